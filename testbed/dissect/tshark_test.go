package dissect

import (
	"bytes"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
)

const plugin = "../../dist/wireshark/inof.lua"

func requireTshark(t testing.TB) {
	t.Helper()
	netnstest.Programs(t, "tshark")
	out, err := exec.Command("tshark", "--version").Output()
	if err == nil && !strings.Contains(string(out), "with Lua") {
		err = errors.New("it has no Lua")
	}
	netnstest.Require(t, "tshark", err)
}

// tshark runs it with the plugin and nothing of the user's own, and gives what it
// prints. That the plugin loads and runs without an error of Lua is checked here.
func tshark(t testing.TB, args ...string) []byte {
	t.Helper()
	home := t.TempDir()
	if args[0] != "-G" { // which must be the first argument
		args = append([]string{"-n"}, args...)
	}
	c := exec.Command("tshark", append(args, "-X", "lua_script:"+plugin)...)
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "WIRESHARK_CONFIG_DIR="+home, "TZ=UTC", "LC_ALL=C.UTF-8")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("tshark %q: %v\n%s", args, err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, "could be dangerous") { // it does not like to be root
			t.Errorf("tshark %q says: %s", args, line)
		}
	}
	return stdout.Bytes()
}

// node is an element of PDML, the XML that shows a packet as Wireshark's tree does.
type node struct {
	Name     string `xml:"name,attr"`
	Showname string `xml:"showname,attr"`
	Show     string `xml:"show,attr"`
	Value    string `xml:"value,attr"` // bytes in hex
	Nodes    []node `xml:",any"`
}

// packet is one packet of a capture; its nodes are the protocols.
type packet struct {
	Nodes []node `xml:"proto"`
}

// ours is how Wireshark tells that one of our dissectors read beyond the bytes.
var ours = regexp.MustCompile(`^\[Malformed Packet: .*(iNOF|NTS|SNSD)`)

// dissect gives the trees of all packets. No packet may hold an error of Lua or an
// exception of our dissectors.
func dissect(t testing.TB, file string, args ...string) []packet {
	t.Helper()
	out := tshark(t, append([]string{"-r", file, "-T", "pdml"}, args...)...)
	var doc struct {
		Packets []packet `xml:"packet"`
	}
	// A label is cut after so many bytes, in the middle of a character if need be.
	if err := xml.Unmarshal(bytes.ToValidUTF8(out, []byte("?")), &doc); err != nil {
		t.Fatalf("PDML: %v", err)
	}
	for i, p := range doc.Packets {
		for _, n := range p.Nodes {
			n.walk(func(n *node) {
				if n.Name == "_ws.lua.error" || strings.Contains(n.Showname, "Lua Error") || ours.MatchString(n.Showname) {
					t.Errorf("%s, packet %d: %s %s %s", filepath.Base(file), i+1, n.Name, n.Showname, n.Show)
				}
			})
		}
	}
	return doc.Packets
}

// walk calls f for n and everything below it, in the order of the tree.
func (n *node) walk(f func(*node)) {
	f(n)
	for i := range n.Nodes {
		n.Nodes[i].walk(f)
	}
}

// protos are the trees of one protocol in a packet: one per message.
func (p *packet) protos(name string) []node {
	var out []node
	for _, n := range p.Nodes {
		n.walk(func(n *node) {
			if n.Name == name && len(n.Nodes) > 0 {
				out = append(out, *n)
			}
		})
	}
	return out
}

// show gives the value of the first field of that name, "" if there is none.
func (p *packet) show(name string) string {
	got := ""
	for i := range p.Nodes {
		p.Nodes[i].walk(func(n *node) {
			if n.Name == name && got == "" {
				got = n.Show
			}
		})
	}
	return got
}

// Severities of expert infos.
const (
	severityChat  = "2097152"
	severityWarn  = "6291456"
	severityError = "8388608"
)

// experts lists the expert infos below n of a severity, or of all if it is "": the
// filter name and what they say.
func (n *node) experts(severity string) []string {
	var out []string
	n.walk(func(n *node) {
		if n.Name != "_ws.expert" {
			return
		}
		var name, text, sev string
		for _, c := range n.Nodes {
			switch c.Name {
			case "_ws.expert.message":
				text = c.Show
			case "_ws.expert.severity":
				sev = c.Show
			case "_ws.expert.group":
			default:
				name = c.Name
			}
		}
		if severity == "" || sev == severity {
			out = append(out, name+": "+text)
		}
	})
	return out
}
