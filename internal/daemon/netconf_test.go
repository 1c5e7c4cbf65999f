package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
)

// netconfClient is an operator at a device, in the framing of base:1.0.
type netconfClient struct {
	t    *testing.T
	conn *ssh.Client
	w    io.Writer
	r    *bufio.Reader
}

const rpcEnd = "]]>]]>"

// overNetconf has a device speak NETCONF from its next start on.
func (n *node) overNetconf() {
	n.t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		n.t.Fatal(err)
	}
	n.cfg.Management.UserFile = filepath.Join(n.t.TempDir(), "users")
	if err := os.WriteFile(n.cfg.Management.UserFile, []byte("anna operator "+string(hash)+"\n"), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.cfg.Management.Netconf = netip.AddrPortFrom(n.cfg.Device.ID, 830)
}

func (n *node) netconf() *netconfClient {
	n.t.Helper()
	raw, err := n.f.net.Dial(n.t.Context(), n.cfg.Management.Netconf)
	if err != nil {
		n.t.Fatal(err)
	}
	conn, chans, reqs, err := ssh.NewClientConn(newBuffered(raw), "device", &ssh.ClientConfig{User: "anna", Auth: []ssh.AuthMethod{ssh.Password("secret")}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		n.t.Fatal(err)
	}
	c := &netconfClient{t: n.t, conn: ssh.NewClient(conn, chans, reqs)}
	x, err := c.conn.NewSession()
	if err != nil {
		n.t.Fatal(err)
	}
	w, _ := x.StdinPipe()
	r, _ := x.StdoutPipe()
	c.w, c.r = w, bufio.NewReader(r)
	if err := x.RequestSubsystem("netconf"); err != nil {
		n.t.Fatal(err)
	}
	c.read()
	c.send(`<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>`)
	return c
}

// buffered is a connection whose writes do not wait for the reader, as those of TCP: SSH has both
// sides write first.
type buffered struct {
	net.Conn
	out  chan []byte
	done chan struct{}
	once sync.Once
}

func newBuffered(c net.Conn) *buffered {
	b := &buffered{Conn: c, out: make(chan []byte, 1000), done: make(chan struct{})}
	go func() {
		for {
			select {
			case part := <-b.out:
				if _, err := c.Write(part); err != nil {
					return
				}
			case <-b.done:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	select {
	case b.out <- slices.Clone(p):
		return len(p), nil
	case <-b.done:
		return 0, net.ErrClosed
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Conn.Close()
}

func (c *netconfClient) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.w, text+rpcEnd); err != nil {
		c.t.Fatal(err)
	}
}

func (c *netconfClient) read() string {
	c.t.Helper()
	var b strings.Builder
	for !strings.HasSuffix(b.String(), rpcEnd) {
		x, err := c.r.ReadByte()
		if err != nil {
			c.t.Fatalf("after %q: %v", b.String(), err)
		}
		b.WriteByte(x)
	}
	return b.String()
}

func (c *netconfClient) rpc(operation string) string {
	c.t.Helper()
	c.send(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1">` + operation + `</rpc>`)
	return c.read()
}

func (c *netconfClient) ok(operation string) {
	c.t.Helper()
	if got := c.rpc(operation); !strings.Contains(got, "<ok/>") {
		c.t.Fatalf("%s: %s", operation, got)
	}
}

func netconfZone(name string, members ...string) string {
	text := ""
	for _, m := range members {
		text += "<member>" + m + "</member>"
	}
	return fmt.Sprintf(`<edit-config><target><candidate/></target><config><inof xmlns="urn:openinof:yang:inof"><zones><zone><name>%s</name><config>%s</config></zone></zones></inof></config></edit-config>`, name, text)
}

// A commit over NETCONF is one of the device: hosts are told, it is kept who did it, and what waits
// with a persist-id outlives a restart and goes back at its deadline, or is confirmed.
func TestACommitOverNetconf(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, n := netconfAtSpine(t)
			before := n.zoneFile()
			c := n.netconf()
			c.ok(netconfZone("c", i1, t2))
			if got := c.rpc(`<check xmlns="urn:openinof:yang:inof-operations"/>`); !strings.Contains(got, ">+ zone c with 2 member(s)<") || !strings.Contains(got, ">1</pairs-gained>") {
				t.Errorf("check: %s", got)
			}
			f.toldNothing("only looked at")
			c.ok(`<commit><confirmed/><confirm-timeout>600</confirm-timeout><persist>night</persist></commit>`)
			settle(time.Second)
			f.expect("changed", map[string][]string{"i1": {t2 + active}, "t2": {i1 + active}})
			if got := c.rpc(`<get><filter><inof xmlns="urn:openinof:yang:inof"><hosts><host><address>` + t2 + `</address></host></hosts><zones><zone><name>c</name><state><host/></state></zone></zones></inof></filter></get>`); strings.Count(got, "<host>"+t2+"</host>") != 1 || strings.Count(got, "<mac>") != 1 {
				t.Errorf("hosts: %s", got)
			}
			list, err := n.d.AuditRecords(t.Context(), 10)
			if last := list.Newest[len(list.Newest)-1]; err != nil || last.What != "commit" || !strings.HasPrefix(last.By, "anna (password, from ") || last.From != "NETCONF session 1" || last.Detail["version"] == "" || last.Detail["pairs"] == "" {
				t.Errorf("kept is %+v, %v", last, err)
			}
			n.halt()
			settle(time.Minute)
			n.start()
			settle(30 * time.Second)
			f.toldNothing("restart")
			c = n.netconf()
			if got := c.rpc(`<commit/>`); !strings.Contains(got, "persist-id") {
				t.Errorf("confirmed without its name: %s", got)
			}
			if confirm {
				c.ok(`<commit><persist-id>night</persist-id></commit>`)
			}
			settle(10 * time.Minute)
			if confirm != (n.zoneFile() != before) {
				t.Errorf("confirmed %v, and the zone file is\n%s", confirm, n.zoneFile())
			}
			if confirm {
				f.toldNothing("confirmed")
			} else {
				f.expect("taken back", map[string][]string{"i1": {t2 + unzoned}, "t2": {i1 + unzoned}})
			}
		})
	}
}

// Who ends its session without confirming takes the change back; two devices are changed both, or
// neither, by that.
func TestASessionThatEndsTakesItsCommitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := netconfAtSpine(t)
		before := n.zoneFile()
		c := n.netconf()
		c.ok(netconfZone("c", i1, t2))
		c.ok(`<commit><confirmed/></commit>`)
		settle(time.Second)
		f.expect("changed", map[string][]string{"i1": {t2 + active}, "t2": {i1 + active}})
		c.conn.Close()
		settle(time.Second)
		f.expect("taken back", map[string][]string{"i1": {t2 + unzoned}, "t2": {i1 + unzoned}})
		if n.zoneFile() != before {
			t.Errorf("the zone file is\n%s", n.zoneFile())
		}
		if got := n.netconf().rpc(`<validate><source><config><inof xmlns="urn:openinof:yang:inof"><zones><zone><name>x</name><config><member>alias:none</member></config></zone></zones></inof></config></source></validate>`); !strings.Contains(got, "instance-required") {
			t.Error(got)
		}
	})
}

// netconfAtSpine is a fabric at rest whose reflector speaks NETCONF.
func netconfAtSpine(t *testing.T) (*testFabric, *node) {
	f := threeSwitches(t)
	f.expectAnything()
	n := f.nodes["spine"]
	n.halt()
	n.overNetconf()
	n.start()
	settle(30 * time.Second)
	f.expectAnything()
	return f, n
}
