package netconf

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
)

const modulesDir = "../../dist/yang"

// yanglint checks a document of a kind against the modules that this server says it has.
func yanglint(t *testing.T, kind, document string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "document.xml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-p", modulesDir, "-p", modulesDir + "/netconf", "-t", kind, "-F", "ietf-netconf:candidate,confirmed-commit,rollback-on-error,validate"}
	for _, m := range modules() {
		if m.imported {
			continue
		}
		path := filepath.Join(modulesDir, m.Name+".yang")
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(modulesDir, "netconf", m.Name+"@"+m.Revision+".yang")
		}
		args = append(args, path)
	}
	out, err := exec.Command("yanglint", append(args, file)...).CombinedOutput()
	if err != nil {
		t.Logf("%s\n%s", out, document)
	}
	return err
}

// inside is what stands in the data of a reply.
func inside(t *testing.T, r *element) string {
	t.Helper()
	data := r.child(nsBase, "data")
	if data == nil {
		t.Fatal(text(r))
	}
	var b strings.Builder
	for _, k := range data.kids {
		b.WriteString(text(k))
	}
	return b.String()
}

// What is sent is what the modules say: everything, what a filter leaves, events, and the operation
// that we have added to.
func TestYanglintTakesWhatIsSent(t *testing.T) {
	netnstest.Programs(t, "yanglint")
	bubble(t, func(t *testing.T, d *fakeDevice, s *Server) {
		d.tree = sampleTree
		c := dial(t, s, anna)
		c.ok(`<lock>` + onto + `</lock>`)
		whole := inside(t, c.rpc(`<get/>`))
		for _, part := range []string{"<session-state>", "<mac>", "<config-version>7<", "<p50>640000<", "<in-pfc-frames>10<", "<optic-input-power>-2.345<", "&lt;r&amp;1&gt;", "<role>reflector</role><role>client</role>"} {
			if !strings.Contains(whole, part) {
				t.Errorf("%s is missing in %s", part, whole)
			}
		}
		whole, _, _ = strings.Cut(whole, `<netconf xmlns="`+nsManagement) // RFC 5277 has no YANG
		part := inside(t, c.rpc(`<get><filter><inof xmlns="urn:openinof:yang:inof"><hosts><host><state><role/></state></host></hosts></inof></filter></get>`))
		if !strings.Contains(part, "<hosts><host><address>192.0.2.1</address><device>192.0.2.11</device><port>Ethernet2</port><state><role>") || strings.Contains(part, "<mac>") {
			t.Errorf("of the hosts there is %s", part)
		}
		config := inside(t, c.rpc(`<get-config><source><running/></source></get-config>`))
		c.ok(`<create-subscription xmlns="` + nsNotification + `"/>`)
		d.Append(api.Event{Time: time.Now(), Kind: "port", Port: "eth1", Text: `<a> & "b"`, Device: "192.0.2.1", Addr: "192.0.2.2", Fields: map[string]string{"a": "1", "b": "2"}})
		note := text(c.receive())
		for kind, documents := range map[string][]string{
			"data": {whole}, "get": {part}, "config": {config}, "nc-notif": {note},
			"nc-rpc": {`<rpc xmlns="` + nsBase + `" message-id="1"><commit><force xmlns="` + nsCommitOptions + `"/></commit></rpc>`,
				`<rpc xmlns="` + nsBase + `" message-id="1"><port xmlns="` + nsOperations + `"><name>eth1</name><action>drain</action></port></rpc>`},
		} {
			for _, doc := range documents {
				if err := yanglint(t, kind, doc); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
		if yanglint(t, "data", strings.Replace(whole, "<role>client</role>", "<role>king</role>", 1)) == nil {
			t.Error("yanglint takes what is wrong")
		}
	})
}
