package portguard

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/openinof/inof/fabric/fence"
)

// slow has the egress queue of a port hold what it is sent.
func slow(t *testing.T, x *fabricOfTwo, port string) *netlink.Tbf {
	t.Helper()
	q := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: x.sw.Link(port).Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate: 1000, Buffer: netlink.Xmittime(1000, 2000), Limit: 1 << 20}
	must(t, x.sw.NL.QdiscAdd(q))
	return q
}

// What waited in the queue when the block began still leaves: the block is confirmed once nothing
// waits any longer.
func TestABlockIsConfirmedOnceTheQueueIsEmpty(t *testing.T) {
	x := newFabricOfTwo(t)
	g := open(t, x.sw, Config{})
	place(t, x.sw, g, "p1")
	k := pairs["IPv4"]
	ask := func(b fence.Block) (drained bool) {
		in(t, x.sw, func() {
			var err error
			drained, err = g.Drained(b)
			must(t, err)
		})
		return drained
	}
	block := func() fence.Block {
		b, err := g.Block(k, time.Now().Add(time.Hour))
		must(t, err)
		return b
	}
	if b := block(); !ask(b) {
		t.Error("a port without a queue is not drained")
	}
	must(t, g.Lift(k))

	q := slow(t, x, "p1")
	held := func() (n uint32) {
		in(t, x.sw, func() {
			var err error
			n, err = backlog(x.sw.Link("p1"))
			must(t, err)
		})
		return n
	}
	send := func() {
		for end := time.Now().Add(10 * time.Second); held() < 3; { // it comes through the bridge
			if time.Now().After(end) {
				t.Fatal("the queue holds nothing")
			}
			x.h2.send(frame(x.h1.mac, x.h2.mac, nil, 0x0800, ip(k.Host, k.Array, strings.Repeat("held ", 40))))
		}
	}
	send()
	b := block()
	for range 5 {
		if n := held(); ask(b) && n > 0 {
			t.Fatalf("%d frames wait, and it is drained", n)
		}
	}
	must(t, x.sw.NL.QdiscDel(q)) // emptied, as in case 8
	if !ask(b) {
		t.Error("the queue was replaced and the block is not confirmed")
	}
	must(t, g.Lift(k))

	q = slow(t, x, "p1")
	send()
	b = block()
	began := time.Now()
	must(t, x.sw.NL.QdiscChange(&netlink.Tbf{QdiscAttrs: q.QdiscAttrs, Rate: 1 << 30, Buffer: netlink.Xmittime(1<<30, 1<<20), Limit: 1 << 20}))
	for !ask(b) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d frames still wait", held())
		}
	}
	// All that waited has arrived by then.
	x.h3.send(marked(x.h1.mac, x.h3.mac, "after the queue"))
	n := 0
	for _, f := range x.h1.received("after the queue") {
		if bytes.Contains(f, []byte("held")) {
			n++
		}
	}
	if n == 0 {
		t.Error("the queue was not sent: the test shows nothing")
	}
}

func TestAPortAboveOthersIsNeverDrained(t *testing.T) {
	x := newFabricOfTwo(t)
	g := open(t, x.sw, Config{})
	place(t, x.sw, g, "br0")
	b, err := g.Block(fence.Key{Port: "br0", Array: netip.MustParseAddr("192.0.2.1"), Host: netip.MustParseAddr("192.0.2.2")}, time.Now().Add(time.Hour))
	must(t, err)
	in(t, x.sw, func() {
		if ok, err := g.Drained(b); ok || err == nil || !strings.Contains(err.Error(), "br0 is a bridge") {
			t.Errorf("%t %v", ok, err)
		}
	})
}

// The rings of NICs, as Linux shows them below /sys/class/net/PORT.
func TestWhatADriverHoldsIsRead(t *testing.T) {
	port := func(queues ...[2]string) string {
		dir := t.TempDir()
		for i, q := range queues {
			at := filepath.Join(dir, "queues", "tx-"+string(rune('0'+i)), "byte_queue_limits")
			must(t, os.MkdirAll(at, 0o755))
			must(t, os.WriteFile(filepath.Join(at, "inflight"), []byte(q[0]), 0o644))
			must(t, os.WriteFile(filepath.Join(at, "limit"), []byte(q[1]), 0o644))
		}
		return dir
	}
	sent := &netlink.LinkStatistics{TxPackets: 7}
	for name, c := range map[string]struct {
		dir     string
		st      *netlink.LinkStatistics
		held    uint64
		mistake string
	}{
		"empty":                     {port([2]string{"0\n", "3028\n"}, [2]string{"0\n", "0\n"}), sent, 0, ""},
		"one of two queues holds":   {port([2]string{"0\n", "3028\n"}, [2]string{"9084\n", "9084\n"}), sent, 9084, ""},
		"never sent a frame":        {port([2]string{"0\n", "0\n"}), &netlink.LinkStatistics{}, 0, ""},
		"driver without the limits": {port([2]string{"0\n", "0\n"}), sent, 0, "does not report what its ring holds"},
		"no queues":                 {t.TempDir(), sent, 0, "no byte queue limits"},
		"no number":                 {port([2]string{"many\n", "0\n"}), sent, 0, "inflight"},
	} {
		held, err := ring(c.dir, c.st)
		if held != c.held || (err == nil) != (c.mistake == "") || err != nil && !strings.Contains(err.Error(), c.mistake) {
			t.Errorf("%s: %d %v, want %d %q", name, held, err, c.held, c.mistake)
		}
	}
}
