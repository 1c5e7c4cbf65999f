package config

import (
	"strings"
	"testing"
	"time"
)

const clusterDoc = "device: {id: 192.0.2.2, roles: [reflector]}\nsession: {auth: tls, certificate-file: /c, key-file: /k, ca-file: /ca}\nreflector:\n  cluster:\n"

func TestClusterHasDefaultsForProduction(t *testing.T) {
	c, err := Parse("f", []byte(clusterDoc+"    members:\n      - {device: 192.0.2.1}\n      - {device: 192.0.2.2, address: '192.0.2.12:20000'}\n      - {device: '2001:db8::3'}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cl := c.Reflector.Cluster
	if !cl.Enabled() || cl.Heartbeat != time.Second || cl.Election != time.Second || cl.SnapshotEntries != 8192 || cl.Listen.String() != "192.0.2.12:20000" {
		t.Errorf("%+v", cl)
	}
	if got := cl.Members[2].Address.String(); got != "[2001:db8::3]:19517" {
		t.Error(got)
	}
	alone, err := Parse("f", []byte("device: {id: 192.0.2.2, roles: [reflector]}\nsession: {auth: none}\n"), nil)
	if err != nil || alone.Reflector.Cluster.Enabled() {
		t.Errorf("a reflector without the section is in a cluster: %v", err)
	}
}

func TestMistakesInAClusterAreNamed(t *testing.T) {
	for body, want := range map[string]string{
		"    heartbeat: 1s\n":                                                                           "reflector.cluster.members: is missing",
		"    members: [{device: 192.0.2.1}]\n":                                                          "does not hold this device (192.0.2.2)",
		"    members: [{device: 192.0.2.2}, {device: 192.0.2.2}]\n":                                     "listed twice",
		"    members: [{address: '192.0.2.2:20000'}]\n":                                                 "members[0].device: is missing",
		"    members: [{device: 192.0.2.2, address: 192.0.2.2}]\n":                                      "is not address:port",
		"    members: [{device: 192.0.2.2, address: '192.0.2.2:80'}]\n":                                 "has port 80",
		"    members: [{device: 192.0.2.2, address: '224.0.0.1:20000'}]\n":                              "group address",
		"    members: [{device: 192.0.2.2}]\n    heartbeat: 1ms\n":                                      "is too short",
		"    members: [{device: 192.0.2.2}]\n    listen: 192.0.2.2\n":                                   "has no port",
		"    members: [{device: 192.0.2.2}]\n    leader: 192.0.2.2\n":                                   "unknown key",
		"    members: [" + strings.Repeat("{device: 192.0.2.2}, ", 1) + "{device: 192.0.2.3, id: 1}]\n": "unknown key",
	} {
		_, err := Parse("f", []byte(clusterDoc+body), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", body, err, want)
		}
	}
	var many strings.Builder
	for i := range 8 {
		many.WriteString("      - {device: 192.0.2." + string(rune('1'+i)) + "}\n")
	}
	if _, err := Parse("f", []byte(clusterDoc+"    members:\n"+many.String()), nil); err == nil || !strings.Contains(err.Error(), "has 8 entries") {
		t.Error(err)
	}
	client := strings.Replace(clusterDoc, "[reflector]", "[]", 1) + "    members: [{device: 192.0.2.2}]\nports: {access: [e0]}\n"
	if _, err := Parse("f", []byte(client), nil); err == nil || !strings.Contains(err.Error(), "does not apply") {
		t.Error(err)
	}
}

// A password lets every device pose as a member: check, start and reload refuse it.
func TestAClusterNeedsCertificates(t *testing.T) {
	for _, auth := range []string{"hmac-sha256, password-file: /p", "none"} {
		doc := strings.Replace(clusterDoc, "tls, certificate-file: /c, key-file: /k, ca-file: /ca", auth, 1)
		_, err := Parse("f", []byte(doc+"    members: [{device: 192.0.2.2}]\n"), nil)
		if err == nil || !strings.Contains(err.Error(), "f:2:") || !strings.Contains(err.Error(), `session.auth: "`+strings.Split(auth, ",")[0]+`": makes no cluster`) ||
			!strings.Contains(err.Error(), "openssl x509 -req") || !strings.Contains(err.Error(), "subjectAltName=IP:192.0.2.2") {
			t.Errorf("%s: %v", auth, err)
		}
	}
	_, err := Parse("f", []byte("device: {id: 192.0.2.2, roles: [reflector]}\nreflector: {cluster: {members: [{device: 192.0.2.2}]}}\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "session.auth: is not written, and hmac-sha256 makes no cluster") {
		t.Errorf("by default: %v", err)
	}
}
