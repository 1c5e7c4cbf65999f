package gnmi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
)

// follower is a subscription with what it was told.
type follower struct {
	b    *bench
	c    pb.GNMI_SubscribeClient
	stop func()
	got  chan *pb.SubscribeResponse
	end  chan error
}

func (b *bench) subscribe(list *pb.SubscriptionList) *follower {
	b.Helper()
	ctx, stop := context.WithCancel(b.ctx)
	c, err := b.Subscribe(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if list != nil {
		_ = c.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}}) // Recv says why it is refused
	}
	f := &follower{b, c, stop, make(chan *pb.SubscribeResponse, 1<<16), make(chan error, 1)}
	go func() {
		for {
			r, err := c.Recv()
			if err != nil {
				f.end <- err
				return
			}
			f.got <- r
		}
	}()
	synctest.Wait()
	return f
}

// told gives what came since: paths with values, "-" before what is gone, "sync".
func (f *follower) told() (out []string) {
	synctest.Wait()
	for {
		select {
		case r := <-f.got:
			if r.GetSyncResponse() {
				out = append(out, "sync")
			}
			n := r.GetUpdate()
			for _, p := range n.GetDelete() {
				out = append(out, "-"+written(n.GetPrefix(), p))
			}
			for _, u := range n.GetUpdate() {
				out = append(out, written(n.GetPrefix(), u.Path)+" "+valueText(u.Val))
			}
		default:
			return out
		}
	}
}

func (f *follower) expect(what string, want ...string) {
	f.b.Helper()
	if got := f.told(); !slices.Equal(got, want) {
		f.b.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (f *follower) ended(want codes.Code, words string) {
	f.b.Helper()
	synctest.Wait()
	select {
	case err := <-f.end:
		f.b.code(err, want, words)
	default:
		f.b.Error("it goes on")
	}
}

func list(mode pb.SubscriptionList_Mode, subs ...*pb.Subscription) *pb.SubscriptionList {
	return &pb.SubscriptionList{Mode: mode, Subscription: subs, Encoding: pb.Encoding_JSON}
}

func on(p string, mode pb.SubscriptionMode) *pb.Subscription {
	return &pb.Subscription{Path: path(p), Mode: mode}
}

func every(p string, interval time.Duration) *pb.Subscription {
	return &pb.Subscription{Path: path(p), Mode: pb.SubscriptionMode_SAMPLE, SampleInterval: uint64(interval)}
}

const (
	octets = "/interfaces/interface/state/counters/in-octets"
	oper   = "/interfaces/interface/state/oper-status"
	octet1 = "/interfaces/interface[name=eth1]/state/counters/in-octets"
	octet2 = "/interfaces/interface[name=eth2]/state/counters/in-octets"
	oper1  = "/interfaces/interface[name=eth1]/state/oper-status"
	oper2  = "/interfaces/interface[name=eth2]/state/oper-status"
)

func TestOnceAndPollGiveWhatIsThere(t *testing.T) {
	run(t, func(b *bench) {
		once := b.subscribe(list(pb.SubscriptionList_ONCE, on(octets, 0)))
		once.expect("once", octet1+" 100", octet2+" 200", "sync")
		if err := <-once.end; err.Error() != "EOF" {
			t.Error(err)
		}
		l := list(pb.SubscriptionList_ONCE, on(octets, 0))
		l.UpdatesOnly = true
		b.subscribe(l).expect("once, updates_only", "sync")

		poll := b.subscribe(list(pb.SubscriptionList_POLL, on(octet2, 0)))
		poll.expect("poll", octet2+" 200", "sync")
		time.Sleep(time.Hour)
		b.src.change(func(s *telemetry.Snapshot) { s.Ports = []api.Port{port("eth2", 201)} })
		poll.expect("nobody has polled")
		if err := poll.c.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}); err != nil {
			t.Fatal(err)
		}
		poll.expect("polled", octet2+" 201", "sync")
		_ = poll.c.CloseSend()
		poll.ended(codes.Unknown, "EOF")
	})
}

// Counters are compared once a second; what is new comes whole, what is gone once.
func TestOnChangeTellsWhatIsNew(t *testing.T) {
	run(t, func(b *bench) {
		f := b.subscribe(list(pb.SubscriptionList_STREAM, on(octets, pb.SubscriptionMode_ON_CHANGE), on(oper, pb.SubscriptionMode_ON_CHANGE)))
		defer f.stop()
		f.expect("first", octet1+" 100", octet2+" 200", oper1+` "UP"`, oper2+` "UP"`, "sync")
		time.Sleep(10 * time.Second)
		f.expect("nothing is new")
		b.src.change(func(s *telemetry.Snapshot) { s.Ports = []api.Port{port("eth1", 101), port("eth2", 200)} })
		time.Sleep(beat)
		f.expect("a counter", octet1+" 101")
		b.src.change(func(s *telemetry.Snapshot) { s.Ports = []api.Port{port("eth1", 101), port("eth3", 5)} })
		time.Sleep(beat)
		f.expect("one went, one came", "-/interfaces/interface[name=eth2]", "/interfaces/interface[name=eth3]/state/counters/in-octets 5", `/interfaces/interface[name=eth3]/state/oper-status "UP"`)
		time.Sleep(10 * time.Second)
		f.expect("told once")

		// An event has the state read at once; counters keep their pace.
		time.Sleep(beat / 2)
		b.src.change(func(s *telemetry.Snapshot) {
			p := port("eth1", 102)
			p.Carrier = false
			s.Ports = []api.Port{p, port("eth3", 5)}
		})
		b.src.Append(api.Event{Time: time.Now(), Kind: "port", Text: "eth1 is down"})
		time.Sleep(pauseForNotices + settle + time.Millisecond)
		f.expect("an event", oper1+` "DOWN"`)
		time.Sleep(beat)
		f.expect("then the counter", octet1+" 102")
	})
}

func TestSamplesKeepTheirPace(t *testing.T) {
	run(t, func(b *bench) {
		l := list(pb.SubscriptionList_STREAM, every(octet1, 3*time.Second))
		l.UpdatesOnly = true
		f := b.subscribe(l)
		defer f.stop()
		f.expect("updates_only", "sync")
		var got []string
		for range 12 {
			time.Sleep(time.Second)
			got = append(got, f.told()...)
		}
		if n := len(got); n < 3 || n > 4 || got[0] != octet1+" 100" {
			t.Errorf("12 s: %q", got)
		}

		quiet := every(octet1, 2*time.Second)
		quiet.SuppressRedundant, quiet.HeartbeatInterval = true, uint64(20*time.Second)
		q := b.subscribe(list(pb.SubscriptionList_STREAM, quiet))
		defer q.stop()
		q.expect("first", octet1+" 100", "sync")
		time.Sleep(10 * time.Second)
		q.expect("the same is not said again")
		b.src.change(func(s *telemetry.Snapshot) { s.Ports[0] = port("eth1", 103) })
		time.Sleep(3 * time.Second)
		q.expect("it has changed", octet1+" 103")
		time.Sleep(9 * time.Second)
		q.expect("heartbeat", octet1+" 103")

		change := on(oper1, pb.SubscriptionMode_ON_CHANGE)
		change.HeartbeatInterval = uint64(5 * time.Second)
		h := b.subscribe(list(pb.SubscriptionList_STREAM, change))
		defer h.stop()
		h.expect("first", oper1+` "UP"`, "sync")
		time.Sleep(11 * time.Second)
		h.expect("heartbeats", oper1+` "UP"`, oper1+` "UP"`)
	})
}

// What the platform is asked for itself is sampled as often as its least period allows, and the
// device is read no more often for that; what nobody samples so is not.
func TestSamplesBelowASecondAreOfNewReadings(t *testing.T) {
	run(t, func(b *bench) {
		list := list(pb.SubscriptionList_STREAM, every(octet1, 10*time.Millisecond), every("/interfaces/interface[name=eth2]/state/counters/in-octets", 250*time.Millisecond))
		list.UpdatesOnly = true
		f := b.subscribe(list)
		f.expect("updates_only", "sync")
		if p := b.src.pace(); p != (telemetry.Pace{telemetry.ReadTotals: 10 * time.Millisecond}) {
			t.Errorf("the platform is read at %v", p)
		}
		b.src.mu.Lock()
		begun, quick := b.src.reads-b.src.quick, b.src.quick
		b.src.mu.Unlock()
		var first, second []string
		for i := range uint64(100) {
			b.src.change(func(s *telemetry.Snapshot) { s.Ports = []api.Port{port("eth1", 1000+i), port("eth2", 1000+i)} })
			time.Sleep(10 * time.Millisecond)
			for _, got := range f.told() {
				if strings.HasPrefix(got, octet1) {
					first = append(first, got)
				} else {
					second = append(second, got)
				}
			}
		}
		slices.Sort(first)
		if n := len(slices.Compact(first)); n < 99 {
			t.Errorf("%d values in 100 periods of 10 ms: %q", n, first)
		}
		if n := len(second); n < 3 || n > 4 {
			t.Errorf("%d values in 4 periods of 250 ms: %q", n, second)
		}
		b.src.mu.Lock()
		if all, few := b.src.reads-b.src.quick-begun, b.src.quick-quick; all > 1 || few < 99 || few > 101 {
			t.Errorf("in a second the device was read %d times, the platform %d times", all, few)
		}
		b.src.mu.Unlock()

		// The same again is not sent where it is redundant, but at its heartbeat.
		quiet := every(octet1, 100*time.Millisecond)
		quiet.SuppressRedundant, quiet.HeartbeatInterval = true, uint64(5*time.Second)
		q := b.subscribe(&pb.SubscriptionList{Subscription: []*pb.Subscription{quiet}})
		q.told()
		time.Sleep(4 * time.Second)
		q.expect("nothing is new")
		time.Sleep(1100 * time.Millisecond)
		q.expect("heartbeat", octet1+" 1099")

		f.stop()
		q.stop()
		time.Sleep(2 * beat)
		if p := b.src.pace(); p != (telemetry.Pace{}) {
			t.Errorf("for nobody the platform is read at %v", p)
		}
		b.src.mu.Lock()
		quick = b.src.quick
		b.src.mu.Unlock()
		slow := b.subscribe(&pb.SubscriptionList{Subscription: []*pb.Subscription{every(octet1, 2*time.Second), every("/inof/state/machine/cpu-busy", 30*time.Second)}})
		defer slow.stop()
		time.Sleep(10 * time.Second)
		b.src.mu.Lock()
		defer b.src.mu.Unlock()
		if b.src.quick != quick {
			t.Error("it is read in a hurry for who is in none")
		}
	})
}

// The device chooses: events on change, the rest every 10 s.
func TestTargetDefined(t *testing.T) {
	run(t, func(b *bench) {
		f := b.subscribe(list(pb.SubscriptionList_STREAM, on("/interfaces/interface[name=eth1]/state", pb.SubscriptionMode_TARGET_DEFINED)))
		defer f.stop()
		f.told()
		b.src.change(func(s *telemetry.Snapshot) {
			p := port("eth1", 107)
			p.MTU = 1500
			s.Ports = []api.Port{p}
		})
		time.Sleep(2 * time.Second)
		f.expect("an event", "/interfaces/interface[name=eth1]/state/mtu 1500")
		time.Sleep(10 * time.Second)
		if got := f.told(); !slices.Contains(got, octet1+" 107") || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "mtu") }) {
			t.Errorf("%q", got)
		}
	})
}

// Each event is told, whole; a client that does not read loses the oldest, and the newest values of
// paths stay.
func TestEventsAreToldEach(t *testing.T) {
	run(t, func(b *bench) {
		f := b.subscribe(list(pb.SubscriptionList_STREAM, on("/inof/events/latest/state/text", pb.SubscriptionMode_ON_CHANGE)))
		defer f.stop()
		f.expect("none yet", "sync")
		for i := range 3 {
			b.src.Append(api.Event{Time: time.Now(), Kind: "x", Text: fmt.Sprint(i)})
		}
		f.expect("notices go first")
		time.Sleep(pauseForNotices)
		f.expect("three", `/inof/events/latest/state/text "0"`, `/inof/events/latest/state/text "1"`, `/inof/events/latest/state/text "2"`)

		s := &stream{counts: &b.server.counts, kick: make(chan struct{}, 1)}
		for i := range maxEvents + 5 {
			s.queue("", telemetry.OfEvent(&api.Event{ID: uint64(i)}))
		}
		_, events, _ := s.taken()
		if id := events[0].tree[0].V; len(events) != maxEvents || id != uint64(5) || b.server.Counters().EventsDropped != 5 {
			t.Errorf("%d events from %v", len(events), id)
		}
	})
}

// What waits for a slow client is the newest value of each path, and is bounded.
func TestASlowClientGetsTheNewest(t *testing.T) {
	run(t, func(b *bench) {
		list := list(pb.SubscriptionList_STREAM, on(octets, pb.SubscriptionMode_ON_CHANGE))
		s, err := b.server.newStream(list, &pb.SubscribeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		q, _ := parse(nil, path(octets))
		leaf := theSchema.find(q)[0].Leaf
		value := func(port string, n uint64) telemetry.Value {
			return telemetry.Value{Leaf: leaf, Keys: []string{port}, V: n, At: time.Now()}
		}
		for i := range uint64(10) {
			s.take(&difference{changed: telemetry.Tree{value("eth1", i)}})
		}
		s.take(&difference{gone: []gone{{value("eth2", 0).Leaf, []string{"eth2"}, true}}})
		s.take(&difference{changed: telemetry.Tree{value("eth2", 1)}})
		order, _, err := s.taken()
		if err != nil || len(order) != 2 || order[0].values[0].V != uint64(9) || order[0].values[0].again != 9 || len(order[1].gone) != 1 || order[1].values[0].V != uint64(1) {
			t.Errorf("%+v, %v", order, err)
		}
		var many telemetry.Tree
		for i := range maxPending + 1 {
			many = append(many, value("", 1))
			many[i].Keys = []string{fmt.Sprint(i)}
		}
		s.take(&difference{changed: many})
		_, _, err = s.taken()
		b.code(err, codes.ResourceExhausted, "wait for this client")
	})
}

// A client that takes nothing for a minute is cut off, and holds up nobody.
func TestAStuckClientIsCutOff(t *testing.T) {
	run(t, func(b *bench) {
		for i := range 200 {
			b.src.s.Ports = append(b.src.s.Ports, port(fmt.Sprint("p", i), 1))
		}
		ctx, stop := context.WithCancel(b.ctx)
		defer stop()
		c, err := b.Subscribe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list(pb.SubscriptionList_STREAM, every("/interfaces", time.Second))}}); err != nil {
			t.Fatal(err)
		}
		other := b.subscribe(list(pb.SubscriptionList_STREAM, every(octet1, time.Second)))
		defer other.stop()
		time.Sleep(10 * time.Second)
		if n := len(other.told()); n < 10 {
			t.Errorf("another client was told %d times in 10 s", n)
		}
		time.Sleep(stuck + 2*sendPoll)
		if n := b.server.Counters(); n.Stuck != 1 || n.Streams != 1 || n.Duplicates == 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestBadSubscriptionsAreRefused(t *testing.T) {
	run(t, func(b *bench) {
		stream := func(s ...*pb.Subscription) *pb.SubscriptionList { return list(pb.SubscriptionList_STREAM, s...) }
		b.subscribe(stream(on("/nowhere", 0))).ended(codes.Unimplemented, "/nowhere")
		b.subscribe(stream()).ended(codes.InvalidArgument, "without a subscription")
		b.subscribe(stream(make([]*pb.Subscription, 129)...)).ended(codes.ResourceExhausted, "129")
		b.subscribe(stream(every(octets, 9*time.Millisecond))).ended(codes.InvalidArgument, "sample_interval of 9ms: the shortest is 10ms")
		b.subscribe(stream(every("/interfaces/interface/state/counters", 10*time.Millisecond))).ended(codes.InvalidArgument, "the shortest is 50ms")
		b.subscribe(stream(every("/inof/notices", 999*time.Millisecond))).ended(codes.InvalidArgument, "the shortest is 1s")
		b.subscribe(stream(&pb.Subscription{Path: path(octets), Mode: pb.SubscriptionMode_TARGET_DEFINED, SampleInterval: 1})).ended(codes.InvalidArgument, "TARGET_DEFINED")
		b.subscribe(stream(&pb.Subscription{Path: path(octets), Mode: 9})).ended(codes.InvalidArgument, "none of")
		b.subscribe(stream(&pb.Subscription{Path: path(octets), Mode: pb.SubscriptionMode_ON_CHANGE, HeartbeatInterval: 5})).ended(codes.InvalidArgument, "heartbeat_interval of 5ns")
		b.subscribe(list(7, on(octets, 0))).ended(codes.InvalidArgument, "mode 7")
		bytes := stream(on(octets, 0))
		bytes.Encoding = pb.Encoding_BYTES
		b.subscribe(bytes).ended(codes.Unimplemented, "BYTES")

		// One that is in the schema and not there stays open.
		f := b.subscribe(stream(every("/interfaces/interface[name=eth9]/state/mtu", time.Second)))
		f.expect("not there", "sync")
		if err := f.c.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}); err != nil {
			t.Fatal(err)
		}
		f.ended(codes.InvalidArgument, "a Poll in a subscription of mode STREAM")

		silent := b.subscribe(nil)
		time.Sleep(firstMessage + time.Second)
		silent.ended(codes.DeadlineExceeded, "nothing within")
		if n := b.server.Counters().Streams; n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

// 64 streams of 128 subscriptions are served by one read a second, and no more.
func TestManyStreamsAreOneReader(t *testing.T) {
	run(t, func(b *bench) {
		var subs []*pb.Subscription
		for range maxSubscriptions {
			subs = append(subs, on(octets, pb.SubscriptionMode_ON_CHANGE))
		}
		var all []*follower
		for range maxStreams {
			all = append(all, b.subscribe(list(pb.SubscriptionList_STREAM, subs...)))
		}
		b.subscribe(list(pb.SubscriptionList_STREAM, subs[0])).ended(codes.ResourceExhausted, "64 clients")
		b.src.mu.Lock()
		before := b.src.reads
		b.src.mu.Unlock()
		time.Sleep(10 * time.Second)
		b.src.mu.Lock()
		if n := b.src.reads - before; n < 9 || n > 11 {
			t.Errorf("%d readings in 10 s", n)
		}
		b.src.mu.Unlock()
		for _, f := range all {
			f.stop()
		}
		time.Sleep(3 * time.Second)
		b.src.mu.Lock()
		before = b.src.reads
		b.src.mu.Unlock()
		time.Sleep(10 * time.Second)
		if b.src.reads != before || b.server.Counters().Streams != 0 {
			t.Error("it is read for nobody")
		}
	})
}
