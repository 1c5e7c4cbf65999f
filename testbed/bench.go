package testbed

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// BenchOptions say how the fault-to-notice benchmark runs.
type BenchOptions struct {
	Options
	Trials int       // 0: 200
	Out    io.Writer // progress and result; nil: nothing
	// Relay is the command line of the program that calls RelayMain.
	Relay []string
	// RelayEnv is added to its environment.
	RelayEnv []string
}

// Quantiles of one measurement, in microseconds.
type Quantiles struct {
	Trials int     `json:"trials"`
	Min    float64 `json:"min_us"`
	Median float64 `json:"median_us"`
	P99    float64 `json:"p99_us"`
	Max    float64 `json:"max_us"`
}

// BenchResult is fault-to-notice beside its bound.
type BenchResult struct {
	// Notice runs from right before the system call that takes the carrier of a
	// port at tor1 to the kernel's receive time stamp of the notice at a host of tor2.
	Notice Quantiles `json:"fault_to_notice"`
	// Kernel runs from the same moment until a program in tor1 has read the kernel's
	// netlink message about the carrier: the part that no control plane can shorten.
	Kernel Quantiles `json:"fault_to_netlink"`
	// Bound runs from right before a TCP write in tor1, passed on by a relay in spine
	// and one in tor2, to the kernel's receive time stamp of the raw frame at the same host.
	Bound       Quantiles `json:"bound"`
	MedianRatio float64   `json:"median_ratio"` // Notice to Bound
	P99Ratio    float64   `json:"p99_ratio"`
}

// The cable that is pulled, and the host across the fabric that is told.
const (
	benchPulled = "t1" // plane A, at tor1
	benchTold   = "i1" // plane B, at tor2
)

// benchPort is the TCP port of the relays.
const benchPort = 19999

// Bench measures fault to notice on the demo's fabric, and its bound: a message of
// the same way through the same namespaces without any control plane.
func Bench(ctx context.Context, opt BenchOptions) (res BenchResult, err error) {
	if opt.Trials == 0 {
		opt.Trials = 200
	}
	if opt.Out == nil {
		opt.Out = io.Discard
	}
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		return res, err
	}
	topo.Name, opt.Own, opt.Replace = benchLab, true, true // replaces only what a killed run left
	lab, err := Up(ctx, topo, opt.Options)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, lab.Down()) }()
	b := &bench{BenchOptions: opt, lab: lab, truth: newDemoTruth()}
	notice, err := b.notices(ctx)
	if err != nil {
		return res, err
	}
	bound, err := b.bound(ctx)
	if err != nil {
		return res, err
	}
	kernel, err := b.kernel(ctx)
	if err != nil {
		return res, err
	}
	res = BenchResult{Notice: quantiles(notice), Kernel: quantiles(kernel), Bound: quantiles(bound)}
	res.MedianRatio, res.P99Ratio = res.Notice.Median/res.Bound.Median, res.Notice.P99/res.Bound.P99
	b.print(res)
	return res, nil
}

type bench struct {
	BenchOptions
	lab   *Lab
	truth demoTruth
}

// notices pulls and plugs the cable again and again.
func (b *bench) notices(ctx context.Context) ([]time.Duration, error) {
	ag, err := followAgents(b.lab)
	if err != nil {
		return nil, err
	}
	defer ag.close()
	subject, host := b.truth.of(benchPulled, "A"), b.truth.of(benchTold, "B")
	at := b.truth.info(subject)
	if _, err := waitNotice(ctx, ag, host, subject, truth.Active); err != nil {
		return nil, err
	}
	var out []time.Duration
	for i := range b.Trials {
		// Let what the last trial started (acks, registrations) come to rest.
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		fault, err := b.lab.Fault(at.Switch, at.Port, false)
		if err != nil {
			return nil, err
		}
		h, err := waitNotice(ctx, ag, host, subject, truth.Inactive)
		if err != nil {
			return nil, fmt.Errorf("trial %d: %w", i+1, err)
		}
		out = append(out, h.At.Sub(fault))
		if _, err := b.lab.Fault(at.Switch, at.Port, true); err != nil {
			return nil, err
		}
		if _, err := waitNotice(ctx, ag, host, subject, truth.Active); err != nil {
			return nil, fmt.Errorf("trial %d: %w", i+1, err)
		}
	}
	return out, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// waitNotice reads the agents until host is told that subject is in a state.
func waitNotice(ctx context.Context, ag *agents, host, subject netip.Addr, state string) (heard, error) {
	for end := time.Now().Add(demoWait); time.Now().Before(end); {
		hs, err := ag.read()
		if err != nil {
			return heard{}, err
		}
		for _, h := range hs {
			if !h.Again && h.Host == host && h.Subject == subject && h.State == state {
				return h, nil
			}
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return heard{}, err
		}
	}
	return heard{}, fmt.Errorf("%s is not told within %s that %s is %s", host, demoWait, subject, state)
}

// bound measures the way itself: TCP from tor1 to spine, TCP from there to tor2, a
// raw frame from there to the host.
func (b *bench) bound(ctx context.Context) ([]time.Duration, error) {
	to := b.truth.info(b.truth.of(benchTold, "B"))
	last := fmt.Sprintf("10.0.0.12:%d", benchPort)
	first := fmt.Sprintf("10.0.0.1:%d", benchPort)
	stop, err := b.relay("tor2", "--listen", last, "--raw", to.Port)
	if err != nil {
		return nil, err
	}
	defer stop()
	stop, err = b.relay("spine", "--listen", first, "--dial", last)
	if err != nil {
		return nil, err
	}
	defer stop()
	var conn net.Conn
	if err := b.lab.Do("tor1", func() (err error) {
		conn, err = net.DialTimeout("tcp", first, demoWait)
		return err
	}); err != nil {
		return nil, err
	}
	defer conn.Close()
	var rx *rawReader
	if err := b.lab.Do(to.Node, func() (err error) {
		rx, err = newRawReader(to.NIC)
		return err
	}); err != nil {
		return nil, err
	}
	defer rx.close()
	var out []time.Duration
	msg := make([]byte, boundSize)
	for i := range b.Trials {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		at := time.Now()
		if _, err := conn.Write(msg); err != nil {
			return nil, err
		}
		got, err := rx.next()
		if err != nil {
			return nil, fmt.Errorf("bound, trial %d: %w", i+1, err)
		}
		out = append(out, got.Sub(at))
	}
	return out, nil
}

// kernel measures how long it takes until netlink tells of a pulled cable.
func (b *bench) kernel(ctx context.Context) ([]time.Duration, error) {
	at := b.truth.info(b.truth.of(benchPulled, "A"))
	ns, err := netns.GetFromPath(b.lab.ns(at.Switch).net)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	type seen struct {
		up bool
		at time.Time
	}
	changes, done := make(chan seen, 64), make(chan struct{})
	updates := make(chan netlink.LinkUpdate)
	defer close(done)
	if err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{Namespace: &ns}); err != nil {
		return nil, err
	}
	go func() {
		for u := range updates {
			if u.Attrs().Name == at.Port {
				select {
				case changes <- seen{hasCarrier(u.Attrs()), time.Now()}:
				default:
				}
			}
		}
	}()
	wait := func(up bool) (time.Time, error) {
		for limit := time.After(demoWait); ; {
			select {
			case c := <-changes:
				if c.up == up {
					return c.at, nil
				}
			case <-ctx.Done():
				return time.Time{}, ctx.Err()
			case <-limit:
				return time.Time{}, fmt.Errorf("netlink does not tell of %s:%s within %s", at.Switch, at.Port, demoWait)
			}
		}
	}
	var out []time.Duration
	for range b.Trials {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		fault, err := b.lab.Fault(at.Switch, at.Port, false)
		if err != nil {
			return nil, err
		}
		told, err := wait(false)
		if err != nil {
			return nil, err
		}
		out = append(out, told.Sub(fault))
		if _, err := b.lab.Fault(at.Switch, at.Port, true); err != nil {
			return nil, err
		}
		if _, err := wait(true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// relay starts a relay in a node and waits until it listens.
func (b *bench) relay(node string, args ...string) (stop func(), err error) {
	c := b.lab.Command(node, append(slices.Clone(b.Relay), args...)...)
	c.Env = append(c.Env, b.RelayEnv...)
	c.Stderr = os.Stderr
	r, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() { _ = c.Process.Kill(); _ = c.Wait() }
	line := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "ready\n" {
		stop()
		return nil, fmt.Errorf("relay in %s: %q, %w", node, line, err)
	}
	return stop, nil
}

// rawReader takes the bound's frames with the kernel's receive time stamps.
type rawReader struct {
	fd       int
	buf, oob []byte
}

func newRawReader(name string) (*rawReader, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	proto := boundEtherType>>8 | boundEtherType&0xff<<8 // network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	limit := unix.NsecToTimeval(demoWait.Nanoseconds())
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: ifi.Index}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("raw socket at %s: %w", name, err)
	}
	return &rawReader{fd: fd, buf: make([]byte, 2048), oob: make([]byte, 256)}, nil
}

func (r *rawReader) close() { unix.Close(r.fd) }

func (r *rawReader) next() (time.Time, error) {
	for {
		_, n, _, _, err := unix.Recvmsg(r.fd, r.buf, r.oob, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return time.Time{}, err
		}
		msgs, err := unix.ParseSocketControlMessage(r.oob[:n])
		if err != nil {
			return time.Time{}, err
		}
		for _, m := range msgs {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
				return time.Unix(int64(binary.NativeEndian.Uint64(m.Data[0:8])), int64(binary.NativeEndian.Uint64(m.Data[8:16]))), nil
			}
		}
		return time.Time{}, errors.New("frame without a time stamp")
	}
}

func quantiles(ds []time.Duration) Quantiles {
	s := slices.Sorted(slices.Values(ds))
	us := func(t time.Duration) float64 { return math.Round(float64(t.Nanoseconds())/100) / 10 }
	q := Quantiles{Trials: len(s)}
	if len(s) > 0 {
		q.Min, q.Median, q.Max = us(s[0]), us(median(s)), us(s[len(s)-1])
		q.P99 = us(s[min(len(s)-1, int(math.Ceil(0.99*float64(len(s))))-1)])
	}
	return q
}

func (b *bench) print(res BenchResult) {
	row := func(name string, q Quantiles) {
		fmt.Fprintf(b.Out, "%-52s %6d %9.1f %9.1f %9.1f %9.1f\n", name, q.Trials, q.Min, q.Median, q.P99, q.Max)
	}
	fmt.Fprintf(b.Out, "%-52s %6s %9s %9s %9s %9s\n", "microseconds", "trials", "min", "median", "p99", "max")
	row("carrier loss at tor1 to notice at a host of tor2", res.Notice)
	row("of that, until netlink told tor1", res.Kernel)
	row("bound: TCP write at tor1, relayed, raw frame", res.Bound)
	fmt.Fprintf(b.Out, "%-52s %6s %9s %8.2fx %8.2fx\n", "ratio of notice to bound", "", "", res.MedianRatio, res.P99Ratio)
	j, _ := json.Marshal(res)
	fmt.Fprintln(b.Out, strings.TrimSpace(string(j)))
}
