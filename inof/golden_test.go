package inof

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goldenSession gives the frames of the examples that belong to a session with
// authentication: both sides seal with fixed nonces and password.
func goldenSession(t *testing.T) map[string][]byte {
	t.Helper()
	now := time.Unix(1000, 0)
	password, err := NewPassword([]byte(goldenPassword))
	if err != nil {
		t.Fatal(err)
	}
	auth := Auth{Mode: AuthHMAC, Passwords: []Password{password}}
	dialer, err := NewSession(SessionConfig{
		Self: goldenClient, Dialer: true, Roles: RoleClient, Epoch: 0x18a0_0000_0000_0001, Auth: auth, Nonce: goldenNonce(0),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := NewSession(SessionConfig{
		Self: goldenRefl, Roles: RoleReflector | RoleClient, Epoch: 0x18a0_0000_0000_0002, Auth: auth, Nonce: goldenNonce(0x80),
		Keepalive: time.Second, Resume: &Resume{Epoch: 0x18a0_0000_0000_0001, Seq: 5},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	open, err := dialer.Start(nil, now)
	if err != nil {
		t.Fatal(err)
	}
	out["open-client"] = open
	_, answer, err := listener.Receive(open, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	out["open-reflector"] = answer
	_, proof, err := dialer.Receive(answer, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	out["keepalive-client"] = proof
	_, confirm, err := listener.Receive(proof, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	out["keepalive-reflector"] = confirm
	if _, _, err = dialer.Receive(confirm, nil, now); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"update-host", "update-fault", "end-of-sync"} {
		e, err := Encode(golden[name])
		if err != nil {
			t.Fatal(err)
		}
		out[name] = dialer.Seal(nil, e, now)
	}
	e, err := Encode(golden["path-keys"])
	if err != nil {
		t.Fatal(err)
	}
	out["path-keys-sealed"] = listener.Seal(nil, e, now)
	got, _, err := dialer.Receive(out["path-keys-sealed"], nil, now)
	if d := cmp.Diff(golden["path-keys"], got, cmpOpts); err != nil || d != "" {
		t.Errorf("%v, as received: %s", err, d)
	}
	return out
}

// documentExamples reads the hex blocks of docs/protocol.md: bytes up to the bar.
func documentExamples(t *testing.T) map[string][]byte {
	t.Helper()
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	name := ""
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```hex "):
			name = strings.TrimPrefix(line, "```hex ")
			out[name] = []byte{}
		case strings.HasPrefix(line, "```"):
			name = ""
		case name != "":
			digits, _, _ := strings.Cut(line, "|")
			b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
			if err != nil {
				t.Fatalf("example %s: line %q: %v", name, line, err)
			}
			out[name] = append(out[name], b...)
		}
	}
	return out
}

// The examples of the document are what the code sends and understands.
func TestExamplesOfTheDocument(t *testing.T) {
	doc := documentExamples(t)
	session := goldenSession(t)
	for name, m := range golden {
		t.Run(name, func(t *testing.T) {
			want := goldenFrame(t, name, session)
			if !bytes.Equal(doc[name], want) {
				t.Errorf("docs/protocol.md, example %s:\n% x\nthe code says:\n% x", name, doc[name], want)
			}
			got, err := Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, cmpOpts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name := range doc {
		if golden[name] == nil {
			t.Errorf("example %s of docs/protocol.md is in no test", name)
		}
	}
}
