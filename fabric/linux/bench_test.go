package linux

import (
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// percentiles reports median and 99th percentile in microseconds.
func percentiles(b *testing.B, name string, d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Nanoseconds())/1000, name+"-median-us")
	b.ReportMetric(float64(d[len(d)*99/100].Nanoseconds())/1000, name+"-p99-us")
}

// BenchmarkCarrierLoss is the time from the kernel's carrier bit going off, which a
// spinning reader sees, to the event at the owner; "bare" is a subscription to the
// notifications alone, at the same time. Losses follow each other faster than one a
// second: "urgent" is a cable whose interfaces have different indexes, so that
// linkwatch hurries, "held" one on which it does not, as for physical interfaces.
// The poller's question makes the kernel send what it holds, to all subscribers, so
// what a subscription alone is worth then shows in "held-unpolled".
func BenchmarkCarrierLoss(b *testing.B) {
	b.Run("urgent", func(b *testing.B) { carrierLoss(b, true, 0) })
	b.Run("held", func(b *testing.B) { carrierLoss(b, false, 0) })
	b.Run("held-unpolled", func(b *testing.B) { carrierLoss(b, false, -1) })
}

func carrierLoss(b *testing.B, urgent bool, poll time.Duration) {
	sw, host := newSpace(b), newSpace(b)
	if urgent { // shifts the indexes of one side
		la := netlink.NewLinkAttrs()
		la.Name = "shift"
		if err := host.NL.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: "shift1"}); err != nil {
			b.Fatal(err)
		}
	}
	sw.veth("p0", host, "h0")
	updates, done := make(chan netlink.LinkUpdate, 1024), make(chan struct{})
	if err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{Namespace: &sw.Handle}); err != nil {
		b.Fatal(err)
	}
	bare := make(chan time.Time, 1)
	index := sw.Link("p0").Attrs().Index
	var last atomic.Bool // of the bare subscription
	last.Store(true)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for u := range updates {
			at := time.Now()
			up := u.IfInfomsg.Flags&unix.IFF_UP != 0 && u.IfInfomsg.Flags&unix.IFF_LOWER_UP != 0
			if u.Attrs().Index == index && last.Swap(up) && !up {
				bare <- at
			}
		}
	}()
	r, d := start(b, sw, func(c *Config) { c.CarrierPoll = poll }, "p0")
	r.ready("p0")
	count := openCount(b, sw, "p0")
	var event, notice []time.Duration
	for b.Loop() {
		t0 := spin(count)
		host.SetUp("h0", false)
		ev := r.up("p0", false)
		got := time.Now()
		off := receive(b, t0, "carrier bit off")
		if ev.At.Before(off) { // the spinning reader was not on a core
			off = ev.At
		}
		event = append(event, got.Sub(off))
		notice = append(notice, receive(b, bare, "bare notification").Sub(off))
		host.SetUp("h0", true)
		r.up("p0", true)
		eventually(b, "bare notification of the return", last.Load)
	}
	close(done)
	receive(b, drained, "end of the bare subscription")
	percentiles(b, "event", event)
	percentiles(b, "bare", notice)
	st := d.Stats()
	b.ReportMetric(float64(st.SeenByPoll)/float64(len(event)), "by-poll/op")
	b.ReportMetric(float64(st.SeenByNotice)/float64(len(event)), "by-notice/op")
}

// openCount opens the change count of a port.
func openCount(b *testing.B, s *space, name string) (p portProbe) {
	s.do(func() error {
		probe, err := openSysfs()
		if err != nil {
			return err
		}
		defer probe.close()
		p, err = probe.open(name)
		return err
	})
	b.Cleanup(p.close)
	return p
}

// spin waits until the count differs from what it is now.
func spin(p portProbe) <-chan time.Time {
	at := make(chan time.Time, 1)
	first, err := p.read()
	go func() {
		for v := first; err == nil && v == first; v, err = p.read() {
		}
		at <- time.Now()
	}()
	return at
}

// BenchmarkFrameIn is the time from before sending at one end of a cable to the
// frame at the owner of the other.
func BenchmarkFrameIn(b *testing.B) {
	sw, host := newSpace(b), newSpace(b)
	sw.veth("p0", host, "h0")
	r, _ := start(b, sw, func(c *Config) { c.FrameRate = 1e9 }, "p0")
	r.ready("p0")
	far := host.socket("h0")
	frame := control(fabric.EtherTypeNTS, fabric.MACNTS, payload(100, 1))
	var total, stack []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		if err := far.Send(frame); err != nil {
			b.Fatal(err)
		}
		f := <-r.Frames()
		now := time.Now()
		total = append(total, now.Sub(t0))
		stack = append(stack, now.Sub(f.At))
	}
	percentiles(b, "send-to-owner", total)
	percentiles(b, "kernel-stamp-to-owner", stack)
}

// BenchmarkSend compares the way through the queueing discipline with the bypass.
func BenchmarkSend(b *testing.B) {
	for _, bypass := range []bool{false, true} {
		b.Run(fmt.Sprintf("bypass=%t", bypass), func(b *testing.B) {
			sw, host := newSpace(b), newSpace(b)
			sw.veth("p0", host, "h0")
			r, _ := start(b, sw, func(c *Config) { c.QdiscBypass = bypass }, "p0")
			r.ready("p0")
			frame := control(fabric.EtherTypeNTS, fabric.MACNTS, payload(100, 1))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Send("p0", frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCarrierPoll is one round over many ports, and the share of a core that it
// makes at the interval which the poller would choose.
func BenchmarkCarrierPoll(b *testing.B) {
	for _, ports := range []int{128} {
		for _, sysfs := range []bool{true, false} {
			b.Run(fmt.Sprintf("ports=%d/sysfs=%t", ports, sysfs), func(b *testing.B) {
				sw := newSpace(b)
				var poll *poller
				sw.do(func() error {
					probe, err := openProbe(sysfs)
					poll = newPoller(probe)
					return err
				})
				defer poll.close()
				for i := range ports {
					la := netlink.NewLinkAttrs()
					la.Name = fmt.Sprintf("p%d", i)
					if err := sw.NL.LinkAdd(&netlink.Veth{LinkAttrs: la, PeerName: fmt.Sprintf("h%d", i)}); err != nil {
						b.Fatal(err)
					}
					sw.SetUp(la.Name, true)
					if err := poll.add(i, la.Name); err != nil {
						b.Fatal(err)
					}
				}
				cpu := cpuTime()
				for b.Loop() {
					poll.round(func(int) {})
				}
				round := (cpuTime() - cpu) / time.Duration(b.N)
				interval := pollInterval(DefaultCarrierPoll, round, false)
				b.ReportMetric(100*float64(round+wakeCost)/float64(interval), "%core")
				b.ReportMetric(float64(interval.Microseconds()), "interval-us")
			})
		}
	}
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
