package api

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
)

// publicKey is a line as ssh-keygen writes it.
func publicKey(t *testing.T) (line string, blob []byte) {
	t.Helper()
	pub, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))), k.Marshal()
}

func hash(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func TestAFileOfUsers(t *testing.T) {
	key, blob := publicKey(t)
	h := hash(t, "secret")
	users, err := ParseUsers([]byte("# who may come\n\nanna operator " + h + "\nanna operator " + key + " anna@desk\nbob viewer " + key + "\n"))
	if err != nil || len(users) != 2 || users[0].Name != "anna" || users[0].Role != Operator || len(users[0].Hashes) != 1 || string(users[0].Keys[0].Blob) != string(blob) || users[1].Role != Viewer {
		t.Fatalf("%+v, %v", users, err)
	}
	for text, want := range map[string]string{
		"anna operator":                          "line 1 has 2 words",
		"anna king " + h:                         `line 1: role "king"`,
		"anna viewer secret":                     "line 1: the third word is neither",
		"anna viewer $2a$31$" + h[7:]:            "cost of at most 14",
		"anna viewer $1$abc":                     "no bcrypt hash",
		"anna viewer ssh-ed25519":                "without a key",
		"anna viewer ssh-ed25519 AAAA":           "no ssh-ed25519 key",
		"anna viewer ssh-ed25519 /////wAA":       "no ssh-ed25519 key",
		"anna viewer ssh-rsa" + key[11:]:         "no ssh-rsa key",
		"anna viewer " + h + "\nanna admin " + h: `line 2: "anna" is admin here and viewer before`,
	} {
		_, err := ParseUsers([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), h) {
			t.Errorf("an error repeats a hash: %v", err)
		}
	}
}

func FuzzUsers(f *testing.F) {
	f.Add("anna operator $2a$04$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n")
	f.Add("bob viewer ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx5\n")
	f.Fuzz(func(t *testing.T, text string) {
		users, err := ParseUsers([]byte(text))
		for _, u := range users {
			if err != nil || u.Name == "" || u.Role < Viewer || u.Role > Admin || len(u.Hashes)+len(u.Keys) == 0 {
				t.Fatalf("%+v, %v", u, err)
			}
		}
	})
}

// A password, a token in its place, a key: each lets in with the role of its line, and five that
// are wrong within a minute close the gate for their address alone.
func TestTheGateLetsInWhoProvesIt(t *testing.T) {
	line, blob := publicKey(t)
	_, other := publicKey(t)
	users, err := ParseUsers([]byte("anna operator " + hash(t, "secret") + "\nanna operator " + line + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{Users: func() ([]User, error) { return users, nil }, Tokens: func() ([]Token, error) {
			return []Token{{"robot", Viewer, sha256.Sum256([]byte("token"))}}, nil
		}}
		a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")
		v, err := g.Password(a, "anna", "secret")
		if err != nil || v.Role != Operator || v.String() != "anna (password, from 2001:db8::1)" {
			t.Errorf("%v, %v", v, err)
		}
		if v, err = g.Password(a, "robot", "token"); err != nil || v.Role != Viewer || v.Proof != "token" {
			t.Errorf("%v, %v", v, err)
		}
		if v.May(Viewer, "get") != nil || !errors.Is(v.May(Operator, "commit"), ErrRefused) {
			t.Error("a viewer may commit, or may not get")
		}
		if v, err = g.Key(a, "anna", blob); err != nil || v.Role != Operator || v.Proof != "SSH key" {
			t.Errorf("%v, %v", v, err)
		}
		if _, err = g.Key(a, "anna", other); !errors.Is(err, ErrNobody) {
			t.Errorf("another key: %v", err)
		}
		if _, err = g.Key(a, "bob", blob); !errors.Is(err, ErrNobody) {
			t.Errorf("the key of another: %v", err)
		}
		wrong := [][2]string{{"anna", "Secret"}, {"anna", ""}, {"nobody", "secret"}, {"anna", "token"}, {"robot", "secret"}}
		for _, w := range wrong {
			if _, err = g.Password(a, w[0], w[1]); !errors.Is(err, ErrNobody) {
				t.Errorf("%v: %v", w, err)
			}
		}
		neighbour := netip.MustParseAddr("2001:db8::2")
		if _, err = g.Password(neighbour, "anna", "secret"); !errors.Is(err, ErrTooMany) {
			t.Errorf("after five: %v", err)
		}
		if _, err = g.Key(neighbour, "anna", blob); !errors.Is(err, ErrTooMany) {
			t.Errorf("after five, a key: %v", err)
		}
		if _, err = g.Password(b, "anna", "secret"); err != nil {
			t.Errorf("another address: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err = g.Password(a, "anna", "secret"); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		for i := range 3 * maxFailing {
			g.Failed(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		}
		if n := len(g.attempts.failing); n > maxFailing {
			t.Errorf("%d addresses are remembered", n)
		}
	})
	broken := &Gate{Users: func() ([]User, error) { return nil, errors.New("no such file") }}
	if _, err := broken.Password(netip.MustParseAddr("192.0.2.1"), "anna", "secret"); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNobody) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

type keeper struct{ deeds []Deed }

func (k *keeper) Audit(_ context.Context, d Deed) { k.deeds = append(k.deeds, d) }

func TestWhatIsDoneBesideTheAPIIsKept(t *testing.T) {
	k := &keeper{}
	ctx := As(t.Context(), Visitor{Caller{Name: "anna", From: "192.0.2.1", Proof: "password"}, Operator})
	err := Do(ctx, k, "NETCONF", "commit", "<commit/>", func(ctx context.Context) error {
		Note(ctx, "version", "7")
		return fmt.Errorf("%w: somebody was first", ErrConflict)
	})
	if !errors.Is(err, ErrConflict) || len(k.deeds) != 1 {
		t.Fatalf("%v, %+v", err, k.deeds)
	}
	d := k.deeds[0]
	if d.By != "anna (password, from 192.0.2.1)" || d.From != "NETCONF" || d.What != "commit" || d.Body != "<commit/>" || d.Detail["version"] != "7" || d.Result != "conflict" || !strings.Contains(d.Error, "first") {
		t.Errorf("%+v", d)
	}
	if err := Do(ctx, k, "NETCONF", "commit", "", func(context.Context) error { return nil }); err != nil || k.deeds[1].Result != "done" {
		t.Errorf("%v, %+v", err, k.deeds)
	}
}

// A certificate counts when a CA of now has signed it for clients, for now, in the name of somebody
// whose line says so; every other one is a log-in that failed.
func TestACertificateCountsAsItsCAAndItsUserSay(t *testing.T) {
	users, err := ParseUsers([]byte("anna operator certificate\nbob admin " + hash(t, "secret") + "\nmail@example viewer certificate\n"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		pub, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		made := func(tmpl, parent *x509.Certificate) *x509.Certificate {
			t.Helper()
			if tmpl.NotAfter.IsZero() {
				tmpl.NotBefore, tmpl.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
			}
			tmpl.SerialNumber = big.NewInt(1)
			der, err := x509.CreateCertificate(nil, tmpl, parent, pub, key)
			if err != nil {
				t.Fatal(err)
			}
			c, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		authority := func(name string) *x509.Certificate {
			c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true}
			return made(c, c)
		}
		ca, other := authority("CA"), authority("other")
		between := made(&x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true}, ca)
		client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		of := func(name string) *x509.Certificate {
			return &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: client}
		}
		server, old := of("anna"), of("anna")
		server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		old.NotBefore, old.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Second)
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		var broken error
		g := &Gate{Users: func() ([]User, error) { return users, nil }, Roots: func() (*x509.CertPool, error) { return roots, broken }}
		from := netip.MustParseAddr("192.0.2.1")
		for i, c := range []struct {
			what  string
			shown []*x509.Certificate
			says  string // empty: it counts
		}{
			{"hers", []*x509.Certificate{made(of("anna"), ca)}, ""},
			{"hers, of a CA between", []*x509.Certificate{made(of("anna"), between), between}, ""},
			{"a name of mail", []*x509.Certificate{made(&x509.Certificate{EmailAddresses: []string{"mail@example"}, ExtKeyUsage: client}, ca)}, ""},
			{"without the CA between", []*x509.Certificate{made(of("anna"), between)}, "unknown authority"},
			{"of another CA", []*x509.Certificate{made(of("anna"), other)}, "unknown authority"},
			{"with its own CA", []*x509.Certificate{made(of("anna"), other), other}, "unknown authority"},
			{"for servers", []*x509.Certificate{made(server, ca)}, "incompatible key usage"},
			{"of an hour ago", []*x509.Certificate{made(old, ca)}, "expired"},
			{"a user without the word", []*x509.Certificate{made(of("bob"), ca)}, `"bob", who has no line`},
			{"nobody", []*x509.Certificate{made(of("eve"), ca)}, `"eve", who has no line`},
			{"no name", []*x509.Certificate{made(of(""), ca)}, `"", who has no line`},
		} {
			if i%4 == 0 {
				time.Sleep(time.Minute) // five that failed are too many
			}
			v, err := g.Enter(Shown{From: from, Certificates: c.shown})
			switch {
			case c.says == "" && (err != nil || v.Proof != "certificate" || v.Role != map[string]Role{"anna": Operator, "mail@example": Viewer}[v.Name]):
				t.Errorf("%s: %+v, %v", c.what, v, err)
			case c.says != "" && (!errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s: %v, want %s", c.what, err, c.says)
			}
		}
		time.Sleep(time.Minute)
		hers := []*x509.Certificate{made(of("anna"), ca)}
		for range 5 { // what is shown besides counts before it
			if _, err := g.Enter(Shown{From: from, Authorization: "Bearer guess", Certificates: hers}); !errors.Is(err, ErrNobody) {
				t.Errorf("a wrong token beside her certificate: %v", err)
			}
		}
		if _, err := g.Enter(Shown{From: from, Certificates: hers}); !errors.Is(err, ErrTooMany) {
			t.Errorf("after five: %v", err)
		}
		time.Sleep(time.Minute)
		broken = errors.New("no such file")
		if _, err := g.Enter(Shown{From: from, Certificates: hers}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("CAs that cannot be read: %v", err)
		}
		if v, err := g.Enter(Shown{From: from, Authorization: "Basic Ym9iOnNlY3JldA=="}); err != nil || v.Role != Admin {
			t.Errorf("bob:secret: %+v, %v", v, err)
		}
	})
}
