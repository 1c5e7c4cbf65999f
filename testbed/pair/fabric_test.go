package pair

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/agentlog"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/truth"
)

// newTruth is what labs/pair says, by hand: host addresses 192.0.2.x, everyone there. All hosts
// are told of all others in their zones.
func newTruth() *truth.Facts {
	var places []truth.Place
	for _, p := range []struct {
		n                     byte
		host, nic, sw, swPort string
	}{
		{11, "i1", "eth1", "tor1", "eth1"}, {21, "t1", "eth1", "tor1", "eth2"}, {91, "t9", "eth1", "tor1", "eth3"},
		{12, "i2", "eth1", "tor2", "eth1"}, {22, "t2", "eth1", "tor2", "eth2"}, {92, "t9", "eth2", "tor2", "eth3"},
		{13, "i3", "eth1", "tor3", "eth1"}, {23, "t3", "eth1", "tor3", "eth2"},
	} {
		places = append(places, truth.Place{Addr: netip.AddrFrom4([4]byte{192, 0, 2, p.n}), Node: p.host, NIC: p.nic, Agent: "snsd-" + p.nic,
			Switch: p.sw, Port: p.swPort, Device: netip.MustParseAddr(idOf[p.sw]), Role: snsd.RoleBoth})
	}
	f := truth.NewFacts(places, map[string][]netip.Addr{
		"blue":  {ip(11), ip(12), ip(21), ip(22), ip(91), ip(92)},
		"green": {ip(13), ip(23)},
		"mixed": {ip(13), ip(21)},
	})
	f.SetReflectors(len(spines))
	for _, p := range places {
		f.SetAgent(p.Addr, true)
	}
	return f
}

var (
	labTruth = newTruth()

	spines = []string{"spine1", "spine2"}
	tors   = []string{"tor1", "tor2", "tor3"}
)

func ip(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

// peersOf lists with whom an address shares a zone.
func peersOf(a netip.Addr) (out []netip.Addr) {
	for _, p := range labTruth.Places() {
		if p.Addr != a && labTruth.Share(a, p.Addr) {
			out = append(out, p.Addr)
		}
	}
	return out
}

// about gives what every peer of an address is told when that becomes so of it. What it is
// told itself when it is back is the answer to its zone query.
func about(a netip.Addr, state, reason string) (out []truth.Notice) {
	for _, p := range peersOf(a) {
		out = append(out, truth.NoticeOf(p, a, state, reason))
	}
	return out
}

// fabric is a lab that is up.
type fabric struct {
	t    testing.TB
	lab  *testbed.Lab
	read map[netip.Addr]int // how much of what it was told has been looked at
}

// newFabric builds the topology, its files changed by edit (path in labs, content). Every host
// is told of all peers of its zones, whatever their roles.
func newFabric(t testing.TB, name string, edit func(path, text string) string) *fabric {
	t.Helper()
	labtest.RequireNetns(t)
	dir := t.TempDir()
	for _, pattern := range []string{labs.Pair, "pair/*"} {
		files, err := fs.Glob(labs.FS, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			b, err := fs.ReadFile(labs.FS, path)
			if strings.HasPrefix(path, "pair/tor") {
				b = append(b, "\nnotify: {peers: all}\n"...)
			}
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, path), []byte(edit(path, string(b))), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	topo, err := testbed.LoadFS(os.DirFS(dir), labs.Pair)
	if err != nil {
		t.Fatal(err)
	}
	topo.Name = name
	lab, err := testbed.Up(context.Background(), topo, testbed.Options{Root: suite.Root(), BinDir: suite.Programs(t), Replace: true, Own: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{t: t, lab: lab, read: map[netip.Addr]int{}}
	t.Cleanup(f.close)
	return f
}

func asShipped(_, text string) string { return text }

// close shows the logs of a test that failed, and takes the lab down.
func (f *fabric) close() {
	if f.t.Failed() {
		for _, n := range slices.Concat(spines, tors) {
			b, _ := os.ReadFile(filepath.Join(f.lab.NodeDir(n), "log", "inofd.log"))
			f.t.Logf("log of %s:\n%s", n, b[max(0, len(b)-4000):])
		}
	}
	if err := f.lab.Down(); err != nil {
		f.t.Error(err)
	}
}

// words reads what an address was told from an offset of its agent's output on,
// repetitions on the wire, what it is told anew when its link is back, and answers to its own
// zone query left out.
func (f *fabric) words(of truth.Place, from int) (out []truth.Notice, end int) {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.lab.NodeDir(of.Node), "log", of.Agent+".out"))
	if err != nil {
		f.t.Fatal(err)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	told, anew, seqs := map[netip.Addr]string{}, map[netip.Addr]bool{}, map[netip.Addr]uint32{}
	var asked time.Time
	at := 0
	for line := range bytes.Lines(b) {
		at += len(line)
		var l agentlog.Line
		if err := json.Unmarshal(line, &l); err != nil {
			f.t.Fatalf("%s: %q: %v", of, line, err)
		}
		switch l.Event {
		case "query":
			asked = l.Time
		case "link":
			for s, state := range told {
				anew[s] = state == truth.Active
			}
		case "notice":
			if seqs[l.Subject] == l.Seq {
				continue // repeated: an agent like the existing one takes it for another
			}
			seqs[l.Subject] = l.Seq
			answer := l.State == truth.Active && told[l.Subject] == truth.Active && (anew[l.Subject] || l.Time.Sub(asked) < 2*time.Second)
			told[l.Subject], anew[l.Subject] = l.State, false
			if at > from && !answer {
				out = append(out, truth.NoticeOf(l.Host, l.Subject, l.State, l.Reason))
			}
		}
	}
	return out, len(b)
}

// settled waits until every host was told of all its peers, and looks away from that.
func (f *fabric) settled() {
	f.t.Helper()
	for _, of := range labTruth.Places() {
		labtest.Eventually(f.t, of.String()+" to be told of its peers", func() error {
			last := map[netip.Addr]string{}
			ws, _ := f.words(of, 0)
			for _, w := range ws {
				last[w.Subject] = w.State
			}
			for _, p := range peersOf(of.Addr) {
				if last[p] != truth.Active {
					return fmt.Errorf("of %s it was told %q", p, last[p])
				}
			}
			return nil
		})
	}
	f.forget()
}

// ready has the fabric settled and every session complete.
func (f *fabric) ready() {
	f.t.Helper()
	f.settled()
	for _, s := range spines {
		f.sessions(s, "complete", up)
	}
	f.expect("nothing happens")
}

// part parts a switch from a reflector, and nobody else from anybody: what the switch
// sends to the reflector's own address is lost.
func (f *fabric) part(tor, spine string, apart bool) {
	f.t.Helper()
	route := []string{"ip", "route", "replace", "blackhole", idOf[spine] + "/32"}
	if !apart {
		n, m := spine[len(spine)-1:], tor[len(tor)-1:]
		f.exec(tor, "ip", "route", "del", "blackhole", idOf[spine]+"/32")
		route = []string{"ip", "route", "replace", idOf[spine] + "/32", "via", "10." + n + "." + m + ".0", "src", idOf[tor]}
	}
	f.exec(tor, route...)
}

func (f *fabric) exec(node string, args ...string) {
	f.t.Helper()
	if _, err := f.lab.Exec(context.Background(), node, args...); err != nil {
		f.t.Fatal(err)
	}
}

// forget looks away from all that was told until now.
func (f *fabric) forget() {
	for _, of := range labTruth.Places() {
		_, f.read[of.Addr] = f.words(of, 0)
	}
}

// quiet is how long nothing more may come after what was expected.
const quiet = 1500 * time.Millisecond

// expect waits until the hosts were told exactly this since the last look, and nothing
// else comes for a while.
func (f *fabric) expect(step string, want ...[]truth.Notice) {
	f.t.Helper()
	all := slices.Concat(want...)
	got := func() (out []truth.Notice) {
		for _, of := range labTruth.Places() {
			ws, _ := f.words(of, f.read[of.Addr])
			out = append(out, ws...)
		}
		return out
	}
	labtest.Eventually(f.t, step, func() error {
		have := got()
		for _, w := range all {
			if !slices.Contains(have, w) {
				return fmt.Errorf("missing: %v; told: %v", w, have)
			}
		}
		return nil
	})
	<-time.After(quiet)
	for _, w := range got() {
		i := slices.Index(all, w)
		if i < 0 {
			f.t.Errorf("%s: unexpected, or twice: %v", step, w)
			continue
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	f.forget()
}

// peers asks the operator's tool for the sessions of a node.
func (f *fabric) peers(node string) []api.Peer {
	f.t.Helper()
	c := exec.Command(filepath.Join(suite.Programs(f.t), "inofctl"), "--socket", f.lab.Socket(node), "show", "peer", "-o", "json")
	out, err := c.Output()
	if err != nil {
		f.t.Fatalf("show peer of %s: %v\n%s", node, err, out)
	}
	var doc struct {
		Peers []api.Peer `json:"peers"`
	}
	if err := json.Unmarshal(out, &doc.Peers); err != nil {
		if err := json.Unmarshal(out, &doc); err != nil {
			f.t.Fatalf("show peer of %s: %v\n%s", node, err, out)
		}
	}
	return doc.Peers
}

// session waits until a switch's session with a reflector is as wanted.
func (f *fabric) session(tor, spine string, what string, ok func(p api.Peer) bool) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("the session of %s with %s to be %s", tor, spine, what), func() error {
		ps := f.peers(tor)
		for _, p := range ps {
			if strings.HasPrefix(p.Address, idOf[spine]+":") && ok(p) {
				return nil
			}
		}
		return fmt.Errorf("they are %+v", ps)
	})
}

var idOf = map[string]string{"spine1": "10.0.0.1", "spine2": "10.0.0.2", "tor1": "10.0.0.11", "tor2": "10.0.0.12", "tor3": "10.0.0.13"}

func up(p api.Peer) bool {
	return p.State == api.PeerEstablished && p.SyncIn != "" && p.SyncOut != ""
}
func down(p api.Peer) bool    { return p.State != api.PeerEstablished }
func resumed(p api.Peer) bool { return up(p) && p.SyncIn == "resumed" && p.SyncOut == "resumed" }

// again is a session with a reflector that has started anew: it was told everything. Its
// own End-of-Sync may wait for what the switches may not have heard yet.
func again(p api.Peer) bool { return p.State == api.PeerEstablished && p.SyncOut == "full" }

// sessions waits for those of all switches with a reflector.
func (f *fabric) sessions(spine, what string, ok func(p api.Peer) bool) {
	f.t.Helper()
	for _, tor := range tors {
		f.session(tor, spine, what, ok)
	}
}

func (f *fabric) kill(node string) {
	f.t.Helper()
	if _, err := f.lab.Kill(node, "inofd"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fabric) start(node string) {
	f.t.Helper()
	if err := f.lab.Start(context.Background(), node, "inofd"); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fabric) cable(node, port string, up bool) {
	f.t.Helper()
	if _, err := f.lab.Fault(node, port, up); err != nil {
		f.t.Fatal(err)
	}
}

// reload has a node's daemon read its files again.
func (f *fabric) reload(node string) {
	f.t.Helper()
	if _, err := f.lab.Signal(node, "inofd", unix.SIGHUP); err != nil {
		f.t.Fatal(err)
	}
}

// ctl runs the operator's tool against a node.
func (f *fabric) ctl(node string, args ...string) string {
	f.t.Helper()
	c := exec.Command(filepath.Join(suite.Programs(f.t), "inofctl"), append([]string{"--socket", f.lab.Socket(node)}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		f.t.Fatalf("inofctl %q on %s: %v\n%s", args, node, err, out)
	}
	return string(out)
}
