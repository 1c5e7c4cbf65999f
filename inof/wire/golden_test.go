package wire_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
)

// goldenSession gives the frames of the examples that belong to a session with
// authentication: both sides seal with fixed nonces and password.
func goldenSession(t *testing.T) map[string][]byte {
	t.Helper()
	now := time.Unix(1000, 0)
	password, err := link.NewPassword([]byte(inoftest.GoldenPassword))
	if err != nil {
		t.Fatal(err)
	}
	auth := link.Auth{Mode: wire.AuthHMAC, Passwords: []link.Password{password}}
	dialer, err := link.NewSession(link.SessionConfig{
		Self: inoftest.GoldenClient, Dialer: true, Roles: wire.RoleClient, Epoch: 0x18a0_0000_0000_0001, Auth: auth, Nonce: inoftest.GoldenNonce(0),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := link.NewSession(link.SessionConfig{
		Self: inoftest.GoldenRefl, Roles: wire.RoleReflector | wire.RoleClient, Epoch: 0x18a0_0000_0000_0002, Auth: auth, Nonce: inoftest.GoldenNonce(0x80),
		Keepalive: time.Second, Resume: &wire.Resume{Epoch: 0x18a0_0000_0000_0001, Seq: 5},
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
		e, err := wire.Encode(inoftest.Golden[name])
		if err != nil {
			t.Fatal(err)
		}
		out[name] = dialer.Seal(nil, e, now)
	}
	e, err := wire.Encode(inoftest.Golden["path-keys"])
	if err != nil {
		t.Fatal(err)
	}
	out["path-keys-sealed"] = listener.Seal(nil, e, now)
	got, _, err := dialer.Receive(out["path-keys-sealed"], nil, now)
	if d := cmp.Diff(inoftest.Golden["path-keys"], got, inoftest.CmpOpts); err != nil || d != "" {
		t.Errorf("%v, as received: %s", err, d)
	}
	return out
}

// documentExamples reads the hex blocks of docs/protocol.md and docs/protocol-examples.md: bytes
// up to the bar.
func documentExamples(t *testing.T) map[string][]byte {
	t.Helper()
	var doc []byte
	for _, file := range []string{"protocol.md", "protocol-examples.md"} {
		text, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		doc = append(doc, text...)
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
	for name, m := range inoftest.Golden {
		t.Run(name, func(t *testing.T) {
			want := inoftest.GoldenFrame(t, name, session)
			if !bytes.Equal(doc[name], want) {
				t.Errorf("documents, example %s:\n% x\nthe code says:\n% x", name, doc[name], want)
			}
			got, err := wire.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, inoftest.CmpOpts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name := range doc {
		if inoftest.Golden[name] == nil {
			t.Errorf("example %s of the documents is in no test", name)
		}
	}
}
