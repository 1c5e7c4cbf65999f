package apart

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric/linux/zonefilter"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/progress"
)

// Options of a run.
type Options struct {
	Memberships []int            // sizes of the policy: pairs that may talk
	Flows       int              // different pairs whose frames come in turn, as far as the policy has so many
	Frames      int              // of one measurement on the wire
	Progress    *progress.Teller // hears of the rounds of each size
	Rounds      int              // measurements of each kind, in turn; the least counts
	Repeat      int              // runs of the program in one measurement without a wire
}

// Default are the options of the table in docs/performance.md.
var Default = Options{Memberships: []int{1, 10_000, 320_000}, Flows: 4096, Frames: 10_000, Rounds: 31, Repeat: 1_000_000}

// Ways are what is measured, in turn; None is no filter at all.
var ways = []string{None, Bare, Lookup, string(hardzone.AttachNative), string(hardzone.AttachTC), string(hardzone.AttachGeneric), NFTables}

const (
	None     = "none"
	Bare     = "bare"   // native XDP, of a program that lets everything pass
	Lookup   = "lookup" // native XDP, of a program of one lookup: see lookup
	NFTables = "nftables"
)

// Result is a whole run.
type Result struct {
	Kernel string `json:"kernel"`
	CPUs   int    `json:"cpus"`
	Sizes  []Size `json:"sizes"`
	// Left out, and why.
	LeftOut []string `json:"left_out,omitempty"`
}

// Size is a run with one size of the policy.
type Size struct {
	Memberships int     `json:"memberships"`
	LoadMS      float64 `json:"load_ms"`   // from no row to all rows in the kernel
	MemoryMB    float64 `json:"memory_mb"` // of all tables, as the kernel says
	UpdateUS    Spread  `json:"update_us"` // one pair opened, or closed
	ZoneUS      Spread  `json:"zone_us"`   // a host joins the zone of 32 others: decided and in the kernel
	NFTLoadMS   float64 `json:"nftables_load_ms,omitempty"`
	// Run is a run of the program alone, in ns: XDP and TC of a permitted pair, XDP of a denied
	// one, of a program that does nothing, and of one lookup.
	Run map[string]float64 `json:"run_ns"`
	// Wire is a frame from one end of a cable through the filter at the other, in ns, for each way.
	Wire map[string]Spread `json:"wire_ns"`
	// Driver is the same with frames as a driver has them: see driver.
	Driver map[string]Spread `json:"driver_ns"`
}

// Spread is the least, the median and the third quartile of several measurements.
type Spread struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

func spread(v []float64) Spread {
	slices.Sort(v)
	at := func(q int) float64 { return v[(len(v)-1)*q/4] }
	return Spread{v[0], at(2), at(3)}
}

// Above is what a way costs above no filter: the least of each, which other work on the machine
// disturbs least.
func (s *Size) Above(way string) float64 { return s.Wire[way].Low - s.Wire[None].Low }

// AboveDriver is the same with frames as a driver has them.
func (s *Size) AboveDriver(way string) float64 { return s.Driver[way].Low - s.Driver[None].Low }

// Bench measures.
func Bench(ctx context.Context, opt Options) (res *Result, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // in a namespace of its own, which ends with the thread
		res, err = bench(ctx, opt)
	}()
	<-done
	return res, err
}

func bench(ctx context.Context, opt Options) (*Result, error) {
	w, err := newWire()
	if err != nil {
		return nil, err
	}
	defer w.close()
	var u unix.Utsname
	_ = unix.Uname(&u)
	res := &Result{Kernel: unix.ByteSliceToString(u.Release[:]), CPUs: runtime.NumCPU()}
	_, nftErr := exec.LookPath("nft")
	if nftErr != nil {
		res.LeftOut = append(res.LeftOut, "nftables: nft is not installed")
	}
	for _, n := range opt.Memberships {
		s, err := w.size(ctx, opt, n, nftErr == nil)
		if err != nil {
			return nil, fmt.Errorf("%d memberships: %w", n, err)
		}
		res.Sizes = append(res.Sizes, *s)
	}
	return res, nil
}

// locals is how many hosts are behind the port at most.
const locals = 256

// ends are the addresses of a pair: hosts here, each with many elsewhere.
func ends(i int) (here, there netip.Addr) {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(i % locals)}), netip.AddrFrom4([4]byte{10, 1 + byte(i/locals>>16), byte(i / locals >> 8), byte(i / locals)})
}

// policy are the rows of so many pairs.
func policy(n int) (steps []hardzone.Step, number map[netip.Addr]uint32) {
	number = make(map[netip.Addr]uint32)
	var hosts []hardzone.Step
	for i := range n {
		var key [2]uint32
		for j, a := range func() [2]netip.Addr { a, b := ends(i); return [2]netip.Addr{a, b} }() {
			if number[a] == 0 {
				number[a] = uint32(len(number) + 1)
				h := hardzone.Host{Addr: a, Number: number[a]}
				if j == 0 {
					h.Ports = []string{portName}
				}
				hosts = append(hosts, hardzone.Step{Op: hardzone.PutHost, Host: h})
			}
			key[j] = number[a]
		}
		steps = append(steps, hardzone.Step{Op: hardzone.PutPair, Pair: hardzone.Pair{Key: hardzone.KeyOf(key[0], key[1])}})
	}
	return append(steps, hosts...), number
}

// frame is a UDP frame for somebody else, so that the kernel drops it right after the filter.
func frame(src, dst netip.Addr) []byte {
	b := make([]byte, 64)
	copy(b, []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45})
	binary.BigEndian.PutUint16(b[16:], 50)
	b[22], b[23] = 64, 17
	copy(b[26:], src.AsSlice())
	copy(b[30:], dst.AsSlice())
	binary.BigEndian.PutUint16(b[34:], 50000)
	binary.BigEndian.PutUint16(b[36:], 4791)
	return b
}

// wire is a cable with the sender at one end and the filters at the other.
type wire struct {
	index int // of the port
	peer  int // of the sender's end
	fd    int
	ns    netns.NsHandle
}

const portName = "swp1"

func newWire() (*wire, error) {
	far, err := netns.New()
	if err == nil {
		_, err = netns.New() // ours
	}
	if err != nil {
		return nil, fmt.Errorf("a network namespace: %w", err)
	}
	w := &wire{ns: far}
	la := netlink.NewLinkAttrs()
	la.Name = portName
	veth := &netlink.Veth{LinkAttrs: la, PeerName: "host1"}
	if err := netlink.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("a cable: %w", err)
	}
	for _, name := range []string{portName, "host1", "lo"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", name, err)
		}
		switch name {
		case portName:
			w.index = l.Attrs().Index
		case "host1":
			w.peer = l.Attrs().Index
			if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err == nil {
				_ = unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
				err = unix.Bind(w.fd, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index})
			}
			if err != nil {
				return nil, fmt.Errorf("a packet socket: %w", err)
			}
		}
	}
	return w, nil
}

func (w *wire) close() {
	unix.Close(w.fd)
	w.ns.Close()
}

// size measures with one size of the policy.
func (w *wire) size(ctx context.Context, opt Options, n int, nft bool) (*Size, error) {
	s := &Size{Memberships: n, Run: make(map[string]float64), Wire: make(map[string]Spread), Driver: make(map[string]Spread)}
	cfg := hardzone.Default()
	cfg.Pins, cfg.Samples = "", 0
	f, err := zonefilter.Open(cfg)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Configure(cfg, nil); err != nil {
		return nil, err
	}
	steps, number := policy(n)
	began := time.Now()
	if err := f.Apply(steps); err != nil {
		return nil, err
	}
	s.LoadMS, s.MemoryMB = float64(time.Since(began).Microseconds())/1e3, float64(f.Memory())/1e6
	if s.UpdateUS, err = updates(f, number); err != nil {
		return nil, err
	}
	if s.ZoneUS, err = zoneChanges(f); err != nil {
		return nil, err
	}
	if err := f.Apply(steps); err != nil { // what the measurements above closed
		return nil, err
	}
	one, err := newLookup(n)
	if err != nil {
		return nil, err
	}
	defer one.close()
	if err := runs(f, one, opt.Repeat, s.Run); err != nil {
		return nil, err
	}
	frames := make([][]byte, min(n, opt.Flows))
	for i := range frames {
		frames[i] = frame(ends(i * (n / len(frames))))
	}
	if nft {
		began := time.Now()
		if err := nftables(ruleset(n)); err != nil {
			return nil, err
		}
		s.NFTLoadMS = float64(time.Since(began).Microseconds()) / 1e3
	}
	if err := buffered(portName); err != nil {
		return nil, err
	}
	var pairs [][2]netip.Addr
	for i := range frames {
		a, b := ends(i * (n / len(frames)))
		pairs = append(pairs, [2]netip.Addr{a, b})
	}
	drv, err := w.newDriver(pairs)
	if err != nil {
		return nil, err
	}
	defer drv.close()
	took, card := make(map[string][]float64), make(map[string][]float64)
	begun := time.Now()
	for round := range opt.Rounds {
		opt.Progress.At(round, opt.Rounds, time.Since(begun))
		for _, way := range ways {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if way == NFTables && !nft {
				continue
			}
			undo, err := w.filter(f, one, cfg, way)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			took[way] = append(took[way], w.send(frames, opt.Frames))
			if _, err := drv.send(w, max(opt.Frames/10, len(frames))); err != nil { // warm
				return nil, err
			}
			each, err := drv.send(w, opt.Frames)
			if err != nil {
				return nil, err
			}
			card[way] = append(card[way], each)
			if err := undo(); err != nil {
				return nil, err
			}
		}
	}
	for way, v := range took {
		s.Wire[way], s.Driver[way] = spread(v), spread(card[way])
	}
	return s, nil
}

// filter puts one kind of filter at the port.
func (w *wire) filter(f *zonefilter.Filter, one *lookup, cfg hardzone.Config, way string) (undo func() error, err error) {
	switch way {
	case None:
		return func() error { return nil }, nil
	case Bare:
		return zonefilter.Bare(w.index, hardzone.AttachNative)
	case Lookup:
		return one.attach(w.index)
	case NFTables:
		const chain = "add chain netdev inof in { type filter hook ingress device " + portName + " priority 0; policy drop; }\n" +
			"add rule netdev inof in ip saddr @places counter name ip saddr . ip daddr map @pairs counter accept\n"
		return func() error { return nftables("delete chain netdev inof in\n") }, nftables(chain)
	}
	cfg.Attach = hardzone.Attach(way)
	if err := f.Configure(cfg, nil); err != nil {
		return nil, err
	}
	if st := f.SetPorts([]hardzone.Port{{Name: portName, Index: w.index}})[0]; st.Err != nil {
		return nil, st.Err
	}
	return func() error { f.SetPorts(nil); return nil }, nil
}

// ruleset is the policy in sets of nftables, at the same place: who may send here, and to whom,
// with the counter of the pair's zone; the rule beside it has that of the port.
func ruleset(n int) string {
	var b strings.Builder
	b.WriteString("table netdev inof\ndelete table netdev inof\ntable netdev inof {\n counter zone {}\n set places { type ipv4_addr; elements = {")
	for i := range min(n, locals) {
		a, _ := ends(i)
		fmt.Fprintf(&b, "%s,", a)
	}
	b.WriteString("} }\n map pairs { type ipv4_addr . ipv4_addr : counter; elements = {")
	for i := range n {
		x, y := ends(i)
		fmt.Fprintf(&b, "%s . %s : \"zone\",", x, y)
	}
	b.WriteString("} }\n}\n")
	return b.String()
}

// nftables runs commands of nft.
func nftables(commands string) error {
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader(commands)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %.300s", err, out)
	}
	return nil
}

// send gives the processor's time of one frame, in ns. The kernel carries each through the
// filter before the call returns, in this thread; what other processes take does not count.
func (w *wire) send(frames [][]byte, n int) float64 {
	for i := range max(n/10, len(frames)) { // warm
		_, _ = unix.Write(w.fd, frames[i%len(frames)])
	}
	began := cpuTime()
	for i := range n {
		_, _ = unix.Write(w.fd, frames[i%len(frames)])
	}
	return float64(cpuTime()-began) / float64(n)
}

// cpuTime is what this thread has used, in ns.
func cpuTime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return ts.Nano()
}

// runs measures the program alone.
func runs(f *zonefilter.Filter, one *lookup, repeat int, out map[string]float64) error {
	a, b := ends(0)
	for _, r := range []struct {
		name   string
		way    hardzone.Attach
		frame  []byte
		passes bool
	}{
		{"nothing", "", frame(a, b), true},
		{"xdp permitted", hardzone.AttachNative, frame(a, b), true},
		{"tc permitted", hardzone.AttachTC, frame(a, b), true},
		{"xdp denied", hardzone.AttachNative, frame(a, netip.MustParseAddr("10.255.0.1")), false},
	} {
		var best time.Duration
		for range 5 {
			took, passes, err := f.Cost(portName, r.way, r.frame, repeat/5)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if passes != r.passes {
				return fmt.Errorf("%s: the frame passes: %t", r.name, passes)
			}
			if best == 0 || took < best {
				best = took
			}
		}
		out[r.name] = float64(best.Nanoseconds())
	}
	for range 5 {
		took, err := one.cost(repeat / 5)
		if err != nil {
			return err
		}
		if best := out["lookup"]; best == 0 || took < best {
			out["lookup"] = took
		}
	}
	return nil
}
