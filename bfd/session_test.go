package bfd

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tests of this file are named after the clauses of RFC 5880.

func TestSection681InitialValues(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{Seed: 1})
	s := pu.s()
	if s.localDiscr == 0 {
		t.Error("bfd.LocalDiscr is zero")
	}
	if s.state != StateDown || s.remoteState != StateDown || s.remoteDiscr != 0 || s.remoteMinRx != 1 || s.localDiag != DiagNone || s.remoteDemand {
		t.Errorf("%+v", s)
	}
}

func TestSection681RemoteDiscriminatorIsForgottenAfterADetectionTime(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.wait(149 * ms)
	if s := pu.s(); s.remoteDiscr != 77 || s.state != StateUp {
		t.Fatalf("too early: %v, discriminator %d", s.state, s.remoteDiscr)
	}
	pu.wait(1 * ms)
	if s := pu.s(); s.remoteDiscr != 0 || s.remoteMinRx != 1 {
		t.Errorf("discriminator %d, RemoteMinRx %d after the detection time", s.remoteDiscr, s.remoteMinRx)
	}
	pu.want(StateDown, DiagDetectTime)
}

func TestSection6818RemoteDiscriminatorIsKeptAfterAPeerSignalledDown(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.peer.DesiredMinTx, pu.peer.RequiredMinRx = 1_000_000, 2_000_000
	pu.mustSay(StateDown)
	pu.want(StateDown, DiagNeighborDown)
	if got := pu.take(); len(got) != 1 || got[0].State != StateDown || got[0].YourDiscr != 77 {
		t.Errorf("sent %+v", got)
	}
	pu.wait(3*time.Second - ms)
	if s := pu.s(); s.remoteDiscr != 77 || s.remoteMinRx != 2_000_000 {
		t.Errorf("forgotten too early: %d, %d", s.remoteDiscr, s.remoteMinRx)
	}
	pu.wait(ms)
	if s := pu.s(); s.remoteDiscr != 0 || s.remoteMinRx != 1 {
		t.Errorf("not forgotten: %d, %d", s.remoteDiscr, s.remoteMinRx)
	}
}

// Every state by every received state.
func TestSection686StateMachine(t *testing.T) {
	const none = Diag(0)
	for _, c := range []struct {
		local, remote, want State
		diag                Diag
	}{
		{StateAdminDown, StateAdminDown, StateAdminDown, DiagAdminDown},
		{StateAdminDown, StateDown, StateAdminDown, DiagAdminDown},
		{StateAdminDown, StateInit, StateAdminDown, DiagAdminDown},
		{StateAdminDown, StateUp, StateAdminDown, DiagAdminDown},
		{StateDown, StateAdminDown, StateDown, none},
		{StateDown, StateDown, StateInit, none},
		{StateDown, StateInit, StateUp, none},
		{StateDown, StateUp, StateDown, none},
		{StateInit, StateAdminDown, StateDown, DiagNeighborDown},
		{StateInit, StateDown, StateInit, none},
		{StateInit, StateInit, StateUp, none},
		{StateInit, StateUp, StateUp, none},
		{StateUp, StateAdminDown, StateDown, DiagNeighborDown},
		{StateUp, StateDown, StateDown, DiagNeighborDown},
		{StateUp, StateInit, StateUp, none},
		{StateUp, StateUp, StateUp, none},
	} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3), AdminDown: c.local == StateAdminDown}, Config{})
		switch c.local {
		case StateInit:
			pu.mustSay(StateDown)
		case StateUp:
			pu.up()
		}
		if pu.s().state != c.local {
			t.Fatalf("could not get to %v", c.local)
		}
		pu.mustSay(c.remote)
		if s := pu.s(); s.state != c.want || s.localDiag != c.diag {
			t.Errorf("%v hears %v: %v (%v), want %v (%v)", c.local, c.remote, s.state, s.localDiag, c.want, c.diag)
		}
	}
}

func TestSection686Discards(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*puppet, *Packet)
		want   error
		count  func(Counters) uint64
	}{
		{"unknown Your Discriminator", func(_ *puppet, p *Packet) { p.YourDiscr++ }, ErrNoSession, func(c Counters) uint64 { return c.NoSession }},
		{"unknown source and no discriminator", func(pu *puppet, p *Packet) { p.YourDiscr, p.State, pu.at.Src = 0, StateDown, addrA }, ErrNoSession, func(c Counters) uint64 { return c.NoSession }},
		{"the right discriminator from elsewhere", func(pu *puppet, _ *Packet) { pu.at.Src = addrA }, ErrSource, func(c Counters) uint64 { return c.BadSource }},
		{"multihop packet for a single-hop session", func(pu *puppet, _ *Packet) { pu.at.Multihop = true }, ErrSource, func(c Counters) uint64 { return c.BadSource }},
		{"TTL 254 (RFC 5881 section 5)", func(pu *puppet, _ *Packet) { pu.at.TTL = 254 }, ErrTTL, func(c Counters) uint64 { return c.BadTTL }},
		{"zero Your Discriminator while Up", func(_ *puppet, p *Packet) { p.YourDiscr = 0 }, ErrYourDiscr, func(c Counters) uint64 { return c.BadDiscr }},
		{"authenticated though none is in use", func(_ *puppet, p *Packet) { p.Auth.Type = AuthSHA1 }, ErrAuthMissing, func(c Counters) uint64 { return c.AuthMissing }},
	} {
		pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
		pu.up()
		pu.wait(50 * ms)
		in := pu.s().packetsIn
		err := pu.says(StateUp, func(p *Packet) { c.change(pu, p) })
		if !errors.Is(err, c.want) || c.count(pu.m.Counters()) != 1 {
			t.Errorf("%s: %v, counters %+v", c.name, err, pu.m.Counters())
		}
		if s := pu.s(); s.packetsIn != in {
			t.Errorf("%s: counted as received", c.name)
		}
		pu.wait(100 * ms) // the discarded packet did not put off detection
		if pu.s().state != StateDown {
			t.Errorf("%s: put off detection", c.name)
		}
	}
}

func TestSection686AuthenticationIsDemandedWhenInUse(t *testing.T) {
	pu := newPuppet(t, Peer{Auth: &Auth{Type: AuthSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("x")}}}}, Config{})
	if err := pu.says(StateDown); !errors.Is(err, ErrAuthMissing) || pu.m.Counters().AuthMissing != 1 {
		t.Errorf("got %v", err)
	}
	if pu.s().state != StateDown {
		t.Error("an unsigned packet was taken")
	}
}

func TestSection687PassiveWaitsToBeSpokenTo(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3), Passive: true}, Config{})
	pu.wait(10 * time.Second)
	if got := pu.take(); len(got) != 0 {
		t.Fatalf("a passive session sent %d packets unasked", len(got))
	}
	pu.mustSay(StateDown, forgot)
	if got := pu.take(); len(got) != 1 || got[0].State != StateInit {
		t.Fatalf("sent %+v", got)
	}
	pu.up()
	pu.wait(time.Second) // nothing is heard: Down, and the peer is forgotten
	pu.take()
	pu.wait(10 * time.Second)
	if got := pu.take(); len(got) != 0 {
		t.Errorf("sent %d packets after the peer was forgotten", len(got))
	}
}

func TestSection687SilenceWhenThePeerWantsNone(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.peer.RequiredMinRx = 0
	pu.mustSay(StateUp)
	for range 20 {
		pu.wait(50 * ms)
		pu.mustSay(StateUp)
	}
	if got := pu.take(); len(got) != 0 {
		t.Errorf("sent %d packets", len(got))
	}
	pu.mustSay(StateUp, poll)
	if got := pu.take(); len(got) != 1 || !got[0].Final {
		t.Errorf("a Poll is answered by %+v", got)
	}
	pu.peer.RequiredMinRx = 50_000
	pu.mustSay(StateUp)
	pu.wait(50 * ms)
	if len(pu.take()) == 0 {
		t.Error("still silent")
	}
}

func TestSection66DemandOfThePeerIsHonoured(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.mustSay(StateUp, demands)
	for range 20 {
		pu.wait(50 * ms)
		pu.mustSay(StateUp, demands)
	}
	if got := pu.take(); len(got) != 0 {
		t.Errorf("sent %d periodic packets", len(got))
	}
	// A Poll Sequence is sent all the same.
	pu.reconcile(Peer{Timers: Timers{MinTx: 100 * ms, MinRx: 50 * ms, DetectMult: 3}})
	pu.wait(110 * ms)
	if got := pu.take(); len(got) < 2 || !got[0].Poll || !got[1].Poll {
		t.Errorf("sent %+v, want Polls", got)
	}
	pu.mustSay(StateUp, demands, final)
	pu.take()
	pu.wait(100 * ms)
	if got := pu.take(); len(got) != 0 {
		t.Errorf("sent %d packets after the Final", len(got))
	}
	pu.mustSay(StateUp)
	pu.wait(100 * ms)
	if len(pu.take()) == 0 {
		t.Error("still silent after the peer left Demand mode")
	}
}

func TestSection687Jitter(t *testing.T) {
	for _, c := range []struct {
		mult      uint8
		low, high float64
	}{{3, 0.75, 1}, {1, 0.75, 0.9}} {
		const interval = 2 * time.Second
		// A hundred sessions, so that some packets go along with others.
		m := NewManager(Config{Seed: 7}, t0)
		var wanted []Peer
		for i := range 100 {
			wanted = append(wanted, Peer{Key: Key{Peer: netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + i)})}, Timers: every(interval, c.mult)})
		}
		if err := m.Reconcile(wanted, t0); err != nil {
			t.Fatal(err)
		}
		low, high := 1.0, 0.0
		last := map[uint32]time.Time{}
		for now := t0; now.Before(t0.Add(300 * time.Second)); now = m.Next() {
			m.Tick(now)
			for _, s := range m.Sends() {
				if before, ok := last[s.Discr]; ok {
					share := float64(now.Sub(before)) / float64(interval)
					low, high = min(low, share), max(high, share)
				}
				last[s.Discr] = now
			}
		}
		if low < c.low || high > c.high || low > c.low+0.01 || high < c.high-0.01 {
			t.Errorf("Detect Mult %d: %.4f to %.4f of the interval, want %.2f to %.2f", c.mult, low, high, c.low, c.high)
		}
	}
}

func TestSection687IntervalIsTheLargerOfOursAndThePeers(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.peer.RequiredMinRx = 80_000
	pu.mustSay(StateUp)
	pu.take()
	for range 200 {
		pu.wait(40 * ms)
		pu.mustSay(StateUp)
	}
	if n := len(pu.take()); n < 100 || n > 134 {
		t.Errorf("%d packets in 8 s at 80 ms, want 100 to 133", n)
	}
}

func TestSection684DetectionTimeIsNegotiated(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: Timers{MinTx: 10 * ms, MinRx: 70 * ms, DetectMult: 9}}, Config{})
	pu.up()
	for _, c := range []struct {
		tx   uint32
		mult uint8
		want time.Duration
	}{{20_000, 4, 280 * ms}, {90_000, 5, 450 * ms}, {0, 1, 70 * ms}, {1_000_000, 255, 255 * time.Second}} {
		pu.peer.DesiredMinTx, pu.peer.DetectMult = c.tx, c.mult
		pu.mustSay(StateUp)
		pu.mustSay(StateUp)
		if d := time.Duration(pu.s().detectionTime()); d != c.want {
			t.Errorf("peer's %d us x %d: %v, want %v", c.tx, c.mult, d, c.want)
		}
	}
}

// Detection counts from when the packet came, not from when it was read.
func TestSection684DetectionCountsFromTheArrival(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.wait(60 * ms)
	pu.at.At = pu.now.Add(-20 * ms)
	pu.mustSay(StateUp)
	pu.wait(130*ms - time.Microsecond)
	pu.want(StateUp, DiagNone)
	pu.wait(time.Microsecond)
	pu.want(StateDown, DiagDetectTime)
}

func TestSection6816AdministrativeControl(t *testing.T) {
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3)}, Config{})
	pu.up()
	pu.reconcile(Peer{Timers: every(50*ms, 3), AdminDown: true})
	pu.want(StateAdminDown, DiagAdminDown)
	if got := pu.take(); len(got) != 1 || got[0].State != StateAdminDown || got[0].Diag != DiagAdminDown || got[0].DesiredMinTx != 1_000_000 {
		t.Errorf("sent %+v", got)
	}
	pu.wait(10 * time.Second)
	pu.want(StateAdminDown, DiagAdminDown) // detection has ceased
	if n := len(pu.take()); n < 10 {
		t.Errorf("%d packets in 10 s: the peer has to be told for a detection time at least", n)
	}
	pu.reconcile(Peer{Timers: every(50*ms, 3)})
	pu.want(StateDown, DiagNone)
	if d := cmp.Diff([]Report{ReportAdminDown}, reports(pu.takeEvents())); d != "" {
		t.Error(d)
	}
	if pu.m.Counters().Flaps != 0 {
		t.Error("AdminDown was counted as a flap")
	}
}

func TestSection6816PathDown(t *testing.T) {
	pu := newPuppet(t, Peer{Key: Key{Interface: "eth1"}, Timers: every(50*ms, 3)}, Config{})
	pu.at.Interface = "eth1"
	pu.up()
	pu.m.LinkDown("eth2", pu.now)
	pu.want(StateUp, DiagNone)
	pu.m.LinkDown("eth1", pu.now)
	pu.collect()
	pu.want(StateDown, DiagPathDown)
	ev := pu.takeEvents()
	if len(ev) != 1 || ev[0].Report != ReportDown || ev[0].Diag != DiagPathDown || !ev[0].At.Equal(pu.now) {
		t.Errorf("events %+v", ev)
	}
	pu.take()
	pu.m.LinkUp("eth1", pu.now)
	pu.collect()
	if got := pu.take(); len(got) != 1 {
		t.Errorf("with the carrier back %d packets are sent at once", len(got))
	}
}

// Section 6.7.3: bfd.AuthSeqKnown is cleared after two detection times of silence, so
// that a peer which lost its memory is taken again.
func TestSection681AuthSequenceIsForgottenAfterTwoDetectionTimes(t *testing.T) {
	auth := &Auth{Type: AuthMeticulousSHA1, Keys: []AuthKey{{ID: 1, Secret: []byte("key")}}}
	pu := newPuppet(t, Peer{Timers: every(50*ms, 3), Auth: auth}, Config{})
	say := func(seq uint32) error {
		peer := newAuthState(auth, seq-1)
		p := pu.peer
		p.State, p.Auth = StateDown, peer.section(0, 0)
		b := p.Append(nil)
		peer.sign(b, 0)
		return pu.m.Receive(&pu.at, b, pu.now)
	}
	if err := say(1000); err != nil {
		t.Fatal(err)
	}
	if err := say(5); !errors.Is(err, ErrAuthSeq) {
		t.Fatalf("a sequence number of the past: %v", err)
	}
	pu.wait(299 * ms)
	if err := say(5); !errors.Is(err, ErrAuthSeq) {
		t.Fatalf("before two detection times: %v", err)
	}
	pu.wait(ms)
	if err := say(5); err != nil {
		t.Fatalf("after two detection times: %v", err)
	}
	if c := pu.m.Counters(); c.AuthSeqRejected != 2 {
		t.Errorf("counters %+v", c)
	}
}
