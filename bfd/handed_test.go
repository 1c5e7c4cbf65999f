package bfd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// booted is what the machines' clocks say at t0.
const booted = 1000 * time.Hour

// handedMesh is a mesh whose keys are handed out.
type handedMesh struct {
	*meshWorld
	keys [][]AuthKey // by device
	last []Report    // what each was told last, of all its paths
}

func newHandedMesh(t *testing.T, n int, keys ...AuthKey) *handedMesh {
	w := &handedMesh{meshWorld: newMeshWorld(t, n), keys: make([][]AuthKey, n), last: make([]Report, n)}
	for i := range w.nodes {
		w.start(i)
		w.give(i, keys...)
	}
	return w
}

// start makes the process of a device anew.
func (w *handedMesh) start(i int) {
	w.nodes[i] = NewManager(Config{Seed: uint64(i) + uint64(w.now.Sub(t0)) + 1, Clock: booted + w.now.Sub(t0)}, w.now)
}

// give hands a device its keys.
func (w *handedMesh) give(i int, keys ...AuthKey) {
	w.t.Helper()
	w.keys[i] = keys
	peers := w.wanted(i, w.last[i])
	for j := range peers {
		peers[j].Auth = &Auth{Type: AuthMeticulousSHA1, Keys: keys, Handed: true}
	}
	if err := w.nodes[i].Reconcile(peers, w.now); err != nil {
		w.t.Fatal(err)
	}
}

func (w *handedMesh) pass(d time.Duration) {
	for range d / ms {
		w.millisecond()
	}
}

// forms lets the mesh come up.
func (w *handedMesh) forms() {
	w.t.Helper()
	w.pass(4 * time.Second)
	w.quiet(ReportUp)
	for i := range w.last {
		w.last[i] = ReportUp
	}
}

// quiet tells that each path was told so, and nothing else.
func (w *handedMesh) quiet(want ...Report) {
	w.t.Helper()
	for i, m := range w.nodes {
		told := map[Key][]Report{}
		for _, e := range m.Events() {
			told[e.Key] = append(told[e.Key], e.Report)
		}
		for _, p := range w.wanted(i, 0) {
			if d := cmp.Diff(want, told[p.Key]); d != "" {
				w.t.Errorf("device %d of %v after %v: %s%+v", i, p.Peer, w.now.Sub(t0), d, m.Counters())
			}
		}
	}
	if !w.up() {
		w.t.Errorf("not all sessions are up after %v", w.now.Sub(t0))
	}
}

// signs is the key of the next packet.
func signs(s *session) paddedKey {
	i, _ := s.auth.signer()
	return s.auth.keys[i]
}

func reflectorKey(reflector, generation int) AuthKey {
	return AuthKey{ID: uint8(reflector), Secret: fmt.Appendf(nil, "reflector %d, %d", reflector, generation)}
}

// A process that is killed and started again goes on where it was: its sequence numbers
// are ahead of those before, and no path flaps on either side.
func TestAnAuthenticatedProcessThatIsKilledIsNotNoticed(t *testing.T) {
	w := newHandedMesh(t, 3, reflectorKey(1, 0), reflectorKey(2, 0))
	w.forms()
	for range 5 {
		w.start(0)
		w.pass(50 * ms)
		w.give(0, w.keys[0]...)
		w.pass(6 * time.Second)
		w.quiet()
	}
	for i, m := range w.nodes {
		if c := m.Counters(); c.AuthSeqRejected != 0 {
			t.Errorf("device %d: %+v", i, c)
		}
	}
}

// Reflectors renew what they hand out, come and go, and each device hears of it at a time
// of its own, while processes are killed and new daemons do not know keys yet: as long as
// two devices have a key in common nothing flaps.
func TestKeysThatAreHandedOutChangeWithoutAFlap(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 7))
		gen := []int{0, 0, 0}
		state := func(with ...int) (keys []AuthKey) {
			for _, r := range with {
				keys = append(keys, reflectorKey(r, gen[r]))
			}
			return keys
		}
		w := newHandedMesh(t, 4, state(0, 1)...)
		w.forms()
		steps := []func() []AuthKey{
			func() []AuthKey { gen[0]++; return state(0, 1) }, // the one that signs is renewed
			func() []AuthKey { gen[1]++; return state(0, 1) },
			func() []AuthKey { return state(0, 1, 2) },
			func() []AuthKey { return state(1, 2) },
			func() []AuthKey { gen[1]++; return state(1, 2) },
			func() []AuthKey { gen[2]++; return state(0, 2) },
		}
		for n, step := range steps {
			keys := step()
			for _, i := range rng.Perm(len(w.nodes)) {
				switch rng.IntN(4) {
				case 0: // its daemon was started again and hears of one reflector first
					w.give(i)
					w.pass(time.Duration(rng.IntN(3000)) * ms)
					w.give(i, keys[rng.IntN(len(keys))])
					w.pass(time.Duration(rng.IntN(3000)) * ms)
				case 1: // its process is killed before
					w.start(i)
					w.pass(40 * ms)
					w.give(i, w.keys[i]...)
				}
				w.pass(time.Duration(rng.IntN(5000)) * ms)
				w.give(i, keys...)
			}
			w.pass(20 * time.Second)
			if w.quiet(); t.Failed() {
				t.Fatalf("seed %d, step %d", seed, n)
			}
			for i, m := range w.nodes {
				for _, s := range m.byDiscr {
					if signs(s).secret != newAuthState(&Auth{Type: AuthMeticulousSHA1, Keys: keys}, 0).keys[0].secret {
						t.Errorf("seed %d, step %d: device %d signs with another key than the first", seed, n, i)
					}
				}
			}
		}
	}
}

// One that has the key of one reflector only speaks with one that has both.
func TestTheFirstCommonKeySigns(t *testing.T) {
	w := newHandedMesh(t, 2, reflectorKey(1, 0), reflectorKey(2, 0))
	w.give(1, reflectorKey(2, 0))
	w.forms()
	for i, m := range w.nodes {
		for _, s := range m.byDiscr {
			if signs(s).id != 2 {
				t.Errorf("device %d signs with key %d", i, signs(s).id)
			}
		}
	}
	// The machine of one is exchanged, and it reaches the other reflector now.
	w.give(0, reflectorKey(1, 0))
	w.give(1, reflectorKey(1, 0))
	w.pass(20 * time.Second)
	w.quiet()
}

// A peer that was started again may have fewer keys than before.
func TestAPeerThatIsStartedAgainWithAnotherKeyIsNotNoticed(t *testing.T) {
	w := newHandedMesh(t, 2, reflectorKey(1, 0), reflectorKey(2, 0))
	w.forms()
	w.start(1)
	w.give(1, reflectorKey(2, 0))
	w.pass(20 * time.Second)
	w.quiet()
}

func TestAPathWithoutAKeyIsSilentAndNotTold(t *testing.T) {
	w := newHandedMesh(t, 2)
	w.last[0], w.last[1] = ReportUp, ReportUp // of earlier processes
	for i := range w.nodes {
		w.start(i)
		w.give(i)
	}
	w.pass(time.Minute)
	for i, m := range w.nodes {
		if ev, c := m.Events(), m.Counters(); len(ev) != 0 || c.PacketsOut != 0 || !m.Status(w.now)[0].Keyless {
			t.Errorf("device %d: %+v %+v", i, ev, c)
		}
	}
	w.give(0, reflectorKey(1, 0))
	w.pass(4 * time.Second)
	w.give(1, reflectorKey(1, 0))
	w.pass(4 * time.Second)
	w.quiet()
	// From its key on a path that worked must be seen to work.
	w.start(0)
	w.start(1)
	w.give(0, reflectorKey(1, 0))
	w.give(1)
	w.pass(10 * time.Second)
	if d := cmp.Diff([]Report{ReportDown}, reports(w.nodes[0].Events())); d != "" {
		t.Error(d)
	}
}

// A path that is watched without authentication goes on until its key is there.
func TestAKeyThatIsToComeEndsNoSession(t *testing.T) {
	w := newHandedMesh(t, 2)
	for i, m := range w.nodes {
		w.start(i)
		m = w.nodes[i]
		if err := m.Reconcile(w.wanted(i, ReportUnknown), w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.forms()
	for i := range w.nodes {
		w.give(i)
		w.pass(time.Second)
	}
	for i := range w.nodes {
		w.give(i, reflectorKey(1, 0))
	}
	w.pass(20 * time.Second)
	w.quiet()
	if st := w.nodes[0].Status(w.now)[0]; st.Auth != AuthMeticulousSHA1 {
		t.Errorf("%+v", st)
	}
}

// After the restart of the machine its clock begins anew; the peer forgets the number.
func TestAMachineThatWasStartedAgainIsTaken(t *testing.T) {
	w := newHandedMesh(t, 2, reflectorKey(1, 0))
	w.forms()
	w.nodes[0] = NewManager(Config{Seed: 9, Clock: time.Minute}, w.now)
	w.give(0, w.keys[0]...)
	w.pass(15 * time.Second)
	if !w.up() {
		t.Error("the session does not come up again")
	}
}

// What was recorded is nothing: not while a session stands, nor after its peer was started
// again, and no spoofed packet that names nobody does anything while true ones come.
func TestRecordedAndSpoofedPacketsAreRefused(t *testing.T) {
	w := newHandedMesh(t, 2, reflectorKey(1, 0))
	var recorded [][]byte
	record := func(d time.Duration) {
		for range d / ms {
			for _, p := range w.inbox[1] {
				recorded = append(recorded, p.data)
			}
			w.millisecond()
		}
	}
	record(4 * time.Second)
	w.forms()
	replay := func() {
		for _, b := range recorded {
			err := w.nodes[1].Receive(&Arrival{Src: w.addrs[0], Dst: w.addrs[1], Multihop: true, TTL: 255}, b, w.now)
			if !errors.Is(err, ErrAuthSeq) && !errors.Is(err, ErrNoSession) {
				t.Fatalf("a recorded packet: %v", err)
			}
		}
		for _, state := range []State{StateDown, StateAdminDown} {
			p := Packet{State: state, DetectMult: 3, MyDiscr: 5, DesiredMinTx: 1000, RequiredMinRx: 1000}
			if err := w.nodes[1].Receive(&Arrival{Src: w.addrs[0], Dst: w.addrs[1], Multihop: true, TTL: 255}, p.Append(nil), w.now); !errors.Is(err, ErrAuthMissing) {
				t.Fatalf("a packet without authentication: %v", err)
			}
		}
	}
	for range 20 {
		replay()
		w.pass(50 * ms)
	}
	record(time.Second)
	w.start(0)
	w.give(0, w.keys[0]...)
	w.pass(100 * ms)
	for range 20 {
		replay()
		w.pass(100 * ms)
	}
	w.pass(3 * time.Second)
	w.quiet()
}
