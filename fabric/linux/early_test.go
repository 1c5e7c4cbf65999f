package linux

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux/carrier"
	"github.com/openinof/inof/internal/netnstest"
)

// told is a reader with one port that is up, change number 10, and what its owner gets.
type told struct {
	t *testing.T
	r *reader
	p *port
}

func newTold(t *testing.T) *told {
	t.Helper()
	d, err := New(Config{Access: []string{"p0"}, CarrierPoll: -1})
	if err != nil {
		t.Fatal(err)
	}
	d.hearing = &words{}
	p := newPort(upAt(10).port(), d.cfg.Log)
	p.changes = 10
	p.nts.Store(&Socket{}) // as if open
	d.ports[p.index], d.byName[p.name] = p, p
	r := &reader{d: d, ctx: context.Background()}
	p.doubt.pending = true // the test puts the question itself
	return &told{t, r, p}
}

func upAt(changes uint64) link {
	return link{index: 1, name: "p0", mac: fabric.MAC{2, 0, 0, 0, 0, 1}, mtu: 1500, adminUp: true, carrier: true, changes: changes, ethernet: true}
}

func downAt(changes uint64) link {
	l := upAt(changes)
	l.carrier = false
	return l
}

// events are those since the last call.
func (c *told) events() (ups []bool) {
	for {
		select {
		case ev := <-c.r.d.events:
			ups = append(ups, ev.Port.Up())
		default:
			return ups
		}
	}
}

func (c *told) want(what string, ups ...bool) {
	c.t.Helper()
	got := c.events()
	if len(got) != len(ups) {
		c.t.Fatalf("%s: the owner is told %v, want %v", what, got, ups)
	}
	for i := range got {
		if got[i] != ups[i] {
			c.t.Fatalf("%s: the owner is told %v, want %v", what, got, ups)
		}
	}
}

func (c *told) word(changes uint32, up bool) {
	c.r.word(carrier.Word{Index: 1, Carrier: up, Running: true, Changes: changes, At: time.Now()})
}

func (c *told) netlink(l link, from linkSource) { c.r.link(l, false, from, time.Now()) }

// asks is the moment at which the question of confirm is put.
func (c *told) asks() { c.p.doubt.asked = true; c.p.asked.Store(true) }

// words is a source of the test's own.
type words struct {
	lost   atomic.Uint64
	closed atomic.Bool
}

func (w *words) Read() (carrier.Word, error)  { return carrier.Word{}, os.ErrClosed }
func (w *words) Add(int) error                { return nil }
func (w *words) Remove(int)                   {}
func (w *words) Lost() uint64                 { return w.lost.Load() }
func (w *words) Source() fabric.CarrierSource { return fabric.CarrierFentry }
func (w *words) Whole() bool                  { return true }
func (w *words) Stop()                        {}
func (w *words) Close()                       { w.closed.Store(true) }

func TestALossIsToldOnceByWhoeverSaysItFirst(t *testing.T) {
	c := newTold(t)
	c.word(11, false)
	c.want("the word", false)
	c.netlink(downAt(11), fromNotice)
	c.want("netlink after it")
	if c.p.doubt.lost {
		t.Error("netlink has said it, and it is in doubt still")
	}
	c.netlink(upAt(12), fromNotice)
	c.want("the return", true)
	c.netlink(downAt(13), fromNotice)
	c.want("netlink first", false)
	c.word(13, false)
	c.want("the word after it")
}

func TestTimesOfEventsDoNotGoBack(t *testing.T) {
	c := newTold(t)
	read := time.Now()
	c.r.link(downAt(11), false, fromNotice, read.Add(-time.Millisecond))
	c.r.link(upAt(12), false, fromNotice, read)
	c.r.word(carrier.Word{Index: 1, Running: true, Changes: 13, At: read.Add(-time.Microsecond)})
	var last time.Time
	for range 3 {
		ev := <-c.r.d.events
		if ev.At.Before(last) {
			t.Errorf("an event of %v comes after one of %v", ev.At, last)
		}
		last = ev.At
	}
}

func TestNoOlderMessageBringsALostCarrierBack(t *testing.T) {
	c := newTold(t)
	c.word(11, false)
	c.want("the word", false)
	c.netlink(upAt(10), fromNotice)
	c.netlink(upAt(11), fromNotice) // its flags were read before its count
	c.netlink(upAt(10), fromDump)
	c.want("messages of before")
	if !c.p.doubt.lost {
		t.Error("the loss is taken for confirmed")
	}
	mtu := upAt(10)
	mtu.mtu = 9000
	c.netlink(mtu, fromNotice)
	c.want("what else such a message says", false)
	c.netlink(upAt(12), fromNotice)
	c.want("a later change", true)
}

func TestAFlapWithinAMillisecondEndsAsNetlinkSays(t *testing.T) {
	for _, order := range []struct {
		name string
		do   func(c *told)
		last bool
		told []bool
	}{
		{"words, then netlink", func(c *told) { c.word(11, false); c.word(12, true); c.netlink(upAt(12), fromNotice) }, true, []bool{false, true}},
		{"netlink between", func(c *told) { c.word(11, false); c.netlink(upAt(12), fromNotice); c.word(12, true); c.word(13, false) }, false, []bool{false, true, false}},
		{"netlink of the middle last", func(c *told) { c.word(11, false); c.word(12, true); c.word(13, false); c.netlink(upAt(12), fromNotice) }, false, []bool{false}},
		{"and then of the end", func(c *told) {
			c.word(11, false)
			c.word(13, false)
			c.netlink(upAt(12), fromNotice)
			c.netlink(downAt(13), fromNotice)
			c.netlink(upAt(14), fromNotice)
		}, true, []bool{false, true}},
		{"words out of order", func(c *told) { c.word(13, false); c.word(11, false); c.netlink(downAt(13), fromNotice) }, false, []bool{false}},
		{"words after netlink", func(c *told) { c.netlink(upAt(12), fromNotice); c.word(11, false); c.word(12, true) }, true, []bool{true}},
		{"the count wraps", func(c *told) {
			c.p.changes = 1<<32 - 1
			c.word(0, false)
			c.netlink(upAt(1<<32-1), fromNotice)
			c.netlink(upAt(1), fromNotice)
		}, true, []bool{false, true}},
	} {
		t.Run(order.name, func(t *testing.T) {
			c := newTold(t)
			order.do(c)
			if c.p.state.Up() != order.last {
				t.Errorf("the port is up=%t in the end, want %t", c.p.state.Up(), order.last)
			}
			if order.name == "words after netlink" {
				order.told = nil // up before and after; who needs to know reads Changes
			}
			c.want(order.name, order.told...)
		})
	}
}

func TestAWrongWordLastsUntilNetlinkIsAsked(t *testing.T) {
	c := newTold(t)
	c.word(11, false)
	c.want("the word", false)
	c.netlink(upAt(10), fromPoll) // the answer to a question of before
	c.want("an older answer")
	c.asks()
	c.netlink(upAt(10), fromPoll)
	c.want("the answer", true)
	if n := c.r.d.count.earlyWrong.Load(); n != 1 || c.p.doubt.lost {
		t.Errorf("%d wrong words counted, in doubt: %t", n, c.p.doubt.lost)
	}
}

func TestAWordAfterTheQuestionIsNotAnsweredByIt(t *testing.T) {
	c := newTold(t)
	c.word(11, false)
	c.asks()
	c.word(13, false)
	c.want("words", false)
	c.netlink(upAt(12), fromPoll)
	c.want("an answer of between them")
	c.asks()
	c.netlink(downAt(13), fromPoll)
	c.want("the next answer")
	if c.p.doubt.lost {
		t.Error("in doubt still")
	}
}

func TestWhatAnOperatorShutsIsNoLossOfItsPeer(t *testing.T) {
	c := newTold(t)
	c.r.word(carrier.Word{Index: 1, Changes: 11, At: time.Now()})
	ev := <-c.r.d.events
	if ev.Port.AdminUp || ev.Port.Carrier {
		t.Errorf("an interface that is being closed is told as %+v", ev.Port)
	}
}

func TestAnAnswerThatIsLostIsAskedForAgain(t *testing.T) {
	c := newTold(t)
	c.word(11, false)
	c.asks()
	c.p.seen = c.r.dump
	c.p.doubt.pending = false
	ended, end := context.WithCancel(t.Context())
	end()
	c.r.ctx = ended // there is no kernel to ask
	c.r.dumped(time.Now())
	c.r.d.changing.Lock()
	defer c.r.d.changing.Unlock()
	if c.p.doubt.asked || c.p.asked.Load() || !c.p.doubt.pending {
		t.Errorf("after a dump: %+v, asked %t; want a new question pending", c.p.doubt, c.p.asked.Load())
	}
}

func TestLostWordsAreCountedAndMadeGood(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	var log bytes.Buffer
	r, d := start(t, sw, func(c *Config) {
		c.Carrier, c.CarrierPoll, c.Log = fabric.CarrierNetlink, -1, slog.New(slog.NewTextHandler(&log, nil))
	}, "p0")
	r.ready("p0")
	receive(t, r.Ready(), "Ready")
	w := &words{}
	d.changing.Lock() // nobody hears meanwhile
	d.hearing = w
	d.changing.Unlock()
	d.hears.Store(true)
	defer d.hears.Store(false)
	dumps := d.Stats().Dumps
	d.makeGood(time.Now())
	if n := d.Stats(); n.WordsLost != 0 {
		t.Errorf("%d lost, and none was", n.WordsLost)
	}
	w.lost.Store(3)
	d.makeGood(time.Now())
	eventually(t, "all links are read", func() bool { return d.Stats().Dumps > dumps })
	if n := d.Stats().WordsLost; n != 3 {
		t.Errorf("%d lost, want 3", n)
	}
}

// heard starts a dataplane that hears by a way, or skips where that cannot be.
func heard(t *testing.T, sw *space, how fabric.CarrierSource) (*running, *Dataplane) {
	t.Helper()
	r, d := start(t, sw, func(c *Config) { c.Carrier = how }, "p*")
	eventually(t, "it runs", func() bool { d.mu.RLock(); defer d.mu.RUnlock(); return d.asker != nil })
	if got, why := d.CarrierSource(); got != how {
		t.Skipf("this kernel does not let us hear by %s: %s", how, why)
	}
	return r, d
}

func TestALossIsHeardEarlyOnARealLink(t *testing.T) {
	for _, how := range []fabric.CarrierSource{fabric.CarrierFentry, fabric.CarrierKprobe, fabric.CarrierTracepoint} {
		t.Run(string(how), func(t *testing.T) {
			sw, host := newSpace(t), newSpace(t)
			sw.veth("q0", host, "g0") // makes the indexes of the ends differ: the kernel holds nothing back
			host.veth("g1", host, "g2")
			sw.veth("p0", host, "h0")
			r, d := heard(t, sw, how)
			r.ready("p0")
			const losses = 20
			for range losses {
				host.SetUp("h0", false)
				r.up("p0", false)
				host.SetUp("h0", true)
				r.up("p0", true)
			}
			// Which of the two is read first is the machine's affair: that the kernel's word comes
			// for the losses is not.
			eventually(t, "the kernel function's words", func() bool { return d.Stats().Words >= losses/2 })
			st := d.Stats()
			if st.EarlyWrong != 0 || st.WordsLost != 0 {
				t.Errorf("%d words were wrong and %d lost", st.EarlyWrong, st.WordsLost)
			}
			if how != fabric.CarrierTracepoint && st.Polls > 1 {
				t.Errorf("polled %d times though all changes are heard", st.Polls)
			}
			sw.SetUp("p0", false)
			if ev := r.up("p0", false); how != fabric.CarrierTracepoint && ev.Port.AdminUp {
				t.Errorf("an operator's shutting is told as a loss: %+v", ev)
			}
			t.Logf("of %d losses %d were heard early", losses, st.SeenEarly)
		})
	}
}

// The interfaces of this cable have the same index in their namespaces: linkwatch takes their
// losses for not urgent, and tells netlink of one a second.
func TestASecondLossWithinASecondIsNotHeldBack(t *testing.T) {
	for _, how := range []fabric.CarrierSource{fabric.CarrierFentry, fabric.CarrierKprobe, fabric.CarrierTracepoint} {
		t.Run(string(how), func(t *testing.T) {
			sw, host := newSpace(t), newSpace(t)
			sw.veth("p0", host, "h0")
			if a, b := sw.Link("p0").Attrs().Index, host.Link("h0").Attrs().Index; a != b {
				netnstest.Require(t, "a cable with one index at both ends", fmt.Errorf("the kernel gave %d and %d", a, b))
			}
			r, d := heard(t, sw, how)
			r.ready("p0")
			late := lateness(t)
			const losses = 10
			began, allowed := time.Now(), time.Duration(0)
			for range losses {
				host.SetUp("h0", false)
				r.up("p0", false)
				host.SetUp("h0", true)
				r.up("p0", true)
				allowed += 500*time.Millisecond + 2*late()
			}
			if took := time.Since(began); took > allowed {
				t.Errorf("%d losses took %v, as if netlink had told them", losses, took)
			}
			st := d.Stats()
			if d.whole() && st.Polls > 1 {
				t.Errorf("polled %d times though all changes are heard", st.Polls)
			}
			t.Logf("seen first: word %d, poll %d, netlink %d", st.SeenEarly, st.SeenByPoll, st.SeenByNotice)
		})
	}
}

func TestFlapsOnARealLinkEndAsItIs(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, d := start(t, sw, nil, "p0")
	r.ready("p0")
	for i := range 60 {
		host.SetUp("h0", i%2 == 1)
	}
	sw.SetUp("p0", true)
	state := func() fabric.Port {
		d.mu.RLock()
		defer d.mu.RUnlock()
		return d.ports[sw.Link("p0").Attrs().Index].state
	}
	eventually(t, "the port is up after the last of 60 changes", func() bool {
		for len(r.Events()) > 0 {
			<-r.Events()
		}
		return state().Up()
	})
	host.SetUp("h0", false)
	r.up("p0", false)
	if st := d.Stats(); st.EarlyWrong != 0 {
		t.Errorf("%d words were wrong: %+v", st.EarlyWrong, st)
	}
}

func TestWithoutRightsNetlinkTellsAndTheReasonIsSaid(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	r, d := start(t, sw, func(c *Config) { c.Carrier = fabric.CarrierNetlink }, "p0")
	r.ready("p0")
	host.SetUp("h0", false)
	r.up("p0", false)
	if got, why := d.CarrierSource(); got != fabric.CarrierNetlink || why == "" {
		t.Errorf("heard by %s because %q", got, why)
	}
	eventually(t, "the poller works", func() bool { return d.Stats().Polls > 1 })
}
