package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/testbed/labtest"
)

// envCapture names the variable that says how long the proof by capture goes on after each kind of
// change was made once: 1h.
const envCapture = "INOF_HARDZONING_CAPTURE"

const (
	// closeMargin is how long frames may be on their way that passed the filter before it closed.
	closeMargin = 200 * time.Millisecond
	// lostAfter is how much later than a frame others have arrived when it has not.
	lostAfter = 10 * time.Second
)

// release waits for the frames under way that have to arrive; later ones need not.
func (p *proof) release(ways ...way) {
	p.mu.Lock()
	for _, w := range ways {
		p.must[w] = false
	}
	p.mu.Unlock()
	labtest.Eventually(p.t, fmt.Sprintf("all frames of %v to arrive, or to be lost", ways), func() error {
		p.late()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range ways {
			if n := len(p.pending[w]); n > 0 {
				return fmt.Errorf("%v: %d frames are under way", w, n)
			}
		}
		return nil
	})
}

// passing waits until frames of all kinds pass between those who may talk, and has all do so from
// now on.
func (p *proof) passing() {
	p.t.Helper()
	p.mu.Lock()
	got, pongs, answers := maps.Clone(p.got), maps.Clone(p.pongs), maps.Clone(p.answers)
	p.mu.Unlock()
	labtest.Eventually(p.t, "frames to pass between those who may talk", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		for w, may := range p.may {
			if may && w.from != w.to && (p.got[w] < got[w]+5 || p.pongs[w] < pongs[w]+2 || p.answers[w] < answers[w]+2) {
				return fmt.Errorf("%v: %d frames, %d pings, %d answers", w, p.got[w]-got[w], p.pongs[w]-pongs[w], p.answers[w]-answers[w])
			}
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, may := range p.may {
		p.must[w] = may && w.from != w.to
	}
}

// shut notes what the kernel drops from now on.
func (p *proof) shut(ways ...way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ways {
		p.closed[w] = time.Now().Add(closeMargin)
	}
}

// toggle has a host join the zone of another one, or leave it.
func (p *proof) toggle(x, y string) {
	zone := map[string]string{"1": "a", "2": "b"}[y[1:]]
	ways := []way{{x, y}, {y, x}}
	if p.may[ways[0]] {
		p.release(ways...)
		p.allow(x, y, false)
		p.zone("remove", zone, p.addr[x].String())
		p.kernel(x, y, false)
		p.shut(ways...)
		return
	}
	p.allow(x, y, true)
	p.zone("add", zone, p.addr[x].String())
	p.kernel(x, y, true)
	p.passing()
}

// flap pulls a host's cable, for a moment.
func (p *proof) flap(host string, routed bool) {
	var ways []way
	for _, o := range p.hosts {
		ways = append(ways, way{host, o}, way{o, host})
	}
	p.release(ways...)
	n := slices.Index(p.hosts, host) + 1
	p.fault("sw", fmt.Sprintf("eth%d", n), false)
	time.Sleep(time.Duration(p.rnd.IntN(80)) * time.Millisecond)
	p.fault("sw", fmt.Sprintf("eth%d", n), true)
	if routed { // went with the link
		p.run(host, "ip", "route", "replace", "192.0.0.0/16", "via", fmt.Sprintf("192.0.%d.254", n))
	}
	p.passing()
}

// restart ends the daemon and begins it again, perhaps as another program.
func (p *proof) restart(sig unix.Signal, program string) {
	p.proc.signal(sig)
	p.proc.exit()
	time.Sleep(time.Duration(p.rnd.IntN(300)) * time.Millisecond)
	p.proc = p.launchIn("sw", nil, program, "run", "-c", p.conf)
	p.normal()
}

// dropped gives by link how many frames it dropped: it was down, or the other end, which has room
// for 256, did not take them off in time. What a filter drops is not among them.
func (p *proof) dropped() map[string]uint64 {
	out := map[string]uint64{}
	add := func(node, port string) {
		p.in(node, func() error {
			l, err := netlink.LinkByName(port)
			if err != nil {
				return err
			}
			if st := l.Attrs().Statistics; st != nil && st.TxDropped+st.RxDropped > 0 {
				out[node+":"+port] = st.TxDropped + st.RxDropped
			}
			return nil
		})
	}
	for i, h := range p.hosts {
		add(h, "eth1")
		add("sw", fmt.Sprintf("eth%d", i+1))
	}
	return out
}

// A capture at all hosts shows no frame between hosts that may not talk, and each frame of those
// that may, while zones change, ports flap and the daemon is killed, stopped and upgraded. It goes
// on for INOF_HARDZONING_CAPTURE, 0 s if that is not set, after each change was made once.
func TestByCaptureNothingDeniedPassesAndNothingPermittedIsLost(t *testing.T) {
	var more time.Duration
	if text := os.Getenv(envCapture); text != "" {
		var err error
		if more, err = time.ParseDuration(text); err != nil {
			t.Fatal(envCapture, err)
		}
	}
	for name, routed := range map[string]bool{"bridge": false, "routed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProof(t, "capture"+name, routed)
			inofd := suite.Program(t, "inofd")
			upgraded := filepath.Join(p.dir, "inofd-upgraded")
			b, err := os.ReadFile(inofd)
			if err == nil {
				err = os.WriteFile(upgraded, b, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			p.daemon()
			p.normal()
			for _, h := range p.hosts {
				p.listen(h)
				p.serves(h)
			}
			for _, h := range p.hosts {
				p.sends(h)
				for _, o := range p.hosts {
					if h != o {
						p.connects(way{h, o})
					}
				}
			}
			p.until(time.Second, p.late)
			p.passing()
			var never []way
			for w, may := range p.may {
				if !may {
					never = append(never, w)
				}
			}
			p.shut(never...)

			acts := []struct {
				name string
				do   func()
			}{
				{"i2 and t1", func() { p.toggle("i2", "t1") }},
				{"a kill", func() { p.restart(unix.SIGKILL, inofd) }},
				{"i1 and t2", func() { p.toggle("i1", "t2") }},
				{"i2's cable", func() { p.flap("i2", routed) }},
				{"i2 and t1", func() { p.toggle("i2", "t1") }},
				{"an upgrade", func() { p.restart(unix.SIGTERM, upgraded) }},
				{"t2's cable", func() { p.flap("t2", routed) }},
				{"i1 and t2", func() { p.toggle("i1", "t2") }},
				{"a restart", func() { p.restart(unix.SIGTERM, inofd) }},
				{"a flush", func() {
					if o := p.ctl("sw", "hard-zoning", "flush"); o.code != 0 {
						t.Error(o.stderr)
					}
				}},
			}
			n := 0
			for began := time.Now(); (n < len(acts) || time.Since(began) < more) && !t.Failed(); n++ {
				act := acts[n%len(acts)]
				if n >= len(acts) {
					act = acts[p.rnd.IntN(len(acts))]
				}
				p.mu.Lock()
				p.act = fmt.Sprintf("%s at %s, %s before", act.name, time.Now().Format("15:04:05.000"), p.act[:min(len(p.act), 60)])
				p.mu.Unlock()
				act.do()
				p.mu.Lock()
				for _, l := range p.leaks[:min(len(p.leaks), 10)] {
					t.Error(l)
				}
				p.mu.Unlock()
			}
			var all []way
			for w := range p.must {
				all = append(all, w)
			}
			p.release(all...)
			close(p.stop)
			p.done.Wait()

			var passed, denied, seen uint64
			for _, w := range all {
				passed, denied, seen = passed+p.required[w], denied+p.denied[w], seen+p.seen[w]
			}
			t.Logf("%d changes; %d frames captured at four hosts; %d of those that had to arrive did, %d did not; %d were sent to hosts that may not be reached, %d of them passed",
				n, seen, passed, len(p.lost), denied, len(p.leaks))
			for _, l := range p.lost[:min(len(p.lost), 40)] {
				t.Error("lost:", l)
			}
			t.Log("frames that links dropped, as one that is down or full does:", p.dropped())
			for _, l := range p.leaks[:min(len(p.leaks), 10)] {
				t.Error(l)
			}
			if p.missed > 0 {
				t.Errorf("the captures had no room for %d frames: they prove nothing", p.missed)
			}
			if passed == 0 || denied == 0 {
				t.Error("nothing was tried")
			}
		})
	}
}
