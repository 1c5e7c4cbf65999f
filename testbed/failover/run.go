package failover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/failover/iolog"
)

// Method is what the host does about a notice.
type Method struct {
	Name string
	Args string // of snsd, one a port
	Ours bool   // the service, by its configuration, on both sides
	Off  bool   // it waits for no fence
}

// Methods are those that are compared.
var Methods = []Method{
	{Name: "nothing", Args: "--protocol roce"},
	{Name: "existing agent", Args: "--protocol roce --like-agent --fail-over"},
	{Name: "ours", Ours: true},
	{Name: "ours, fence off", Ours: true, Off: true},
}

// asService is how our unit has systemd run the agent (dist/systemd/snsd.service): it does not wait
// behind the programs whose I/O stands still. The existing agent's unit has nothing of this kind.
const asService = "chrt -r 20 "

// Row is what one fault did to the I/O of one host. Times that are negative are not known.
type Row struct {
	Fault, Method string
	Stall         time.Duration // the longest I/O that was begun before the path was left, or the fault was over
	Later         time.Duration // the longest that was begun after that, while the fault lasted
	Back          time.Duration // the longest that was begun after the fault
	Other         time.Duration // the longest before the fault: what this machine does by itself
	Errors        int
	Notice        time.Duration // from the fault to its notice in the host's kernel
	Done          time.Duration // from the notice until the agent had acted
	Beyond        time.Duration // how much longer than until the notice, where there was one, I/O stood still
	Last          time.Duration // from the notice (the fault, if there is none) to the end of the last I/O that stalled
	Usable        time.Duration // from the end of the fault until the kernel called the path live
	Clock         time.Duration // how wrong times across the two clocks can be, at most
	Reason        string        // of the notice
	Said          []string      // what the agent said of its actions
	States        []string      // of the controllers after the fault
	ours, off     bool
	Slow          []string // the I/Os that took longest, by when they began and ended after the fault
}

// stalled is how long an I/O takes at least that counts as held up: far above those of an idle
// emulated machine. Where those before the fault took long, it is three times as much as they did.
const stalled = 150 * time.Millisecond

// name says over what the fault was.
func (f *Fault) name(t Transport) string {
	if t == RDMA {
		return f.Name + ", RDMA"
	}
	return f.Name
}

// Run has one fault strike under I/O.
func (b *Bed) Run(ctx context.Context, f *Fault, m *Method) (r Row, err error) {
	r = Row{Fault: f.name(b.over), Method: m.Name, ours: m.Ours, off: m.Off, Notice: -1, Done: -1, Usable: -1}
	var files, pids []string
	defer func() {
		if e := b.stop(context.WithoutCancel(ctx), pids...); err == nil {
			err = e
		}
	}()
	if out, err := b.do(ctx, disconnect); err != nil {
		return r, fmt.Errorf("%s: %w", out, err)
	}
	if m.Ours {
		file := map[bool]string{true: "host-off.yaml", false: "host.yaml"}[m.Off]
		pid, err := b.start(ctx, "host.out", asService+"/run/bin/snsd run -c /lab/node/"+file+" --existing /lab/node/snsd.conf")
		if err != nil {
			return r, err
		}
		pids = append(pids, pid)
	} else {
		for p := range tors {
			file := fmt.Sprintf("host%d.out", p+1)
			pid, err := b.start(ctx, file, fmt.Sprintf("/run/bin/snsd --interface eth%d --address %s --role initiator --interval 1s --ttl 4 --restraint 1s --output json %s", p+1, hostAddr(p), m.Args))
			if err != nil {
				return r, err
			}
			files, pids = append(files, file), append(pids, pid)
		}
		if err := b.await(ctx, "the host to be told of the array on both planes", func() error { return b.toldOfBoth(files) }); err != nil {
			return r, err
		}
	}
	if err := b.await(ctx, "both paths live", func() error { return b.bothLive(ctx, m) }); err != nil {
		return r, err
	}
	if out, err := b.do(ctx, evenly); err != nil {
		return r, fmt.Errorf("%s: %w", out, err)
	}
	io, err := b.start(ctx, "io.out", fmt.Sprintf("rm -f /lab/node/io.json; /run/bin/iotime -device $(ls /dev/nvme*n1) -answer %s:7 -out /lab/node/io.json", hostAddr(1)))
	if err != nil {
		return r, err
	}
	pids = append(pids, io)
	if err := b.await(ctx, "I/O", func() error { _, _, _, err := b.now(); return err }); err != nil {
		return r, err
	}
	usual, err := b.usual(ctx, 2*time.Second)
	if err != nil {
		return r, err
	}
	ahead, within, err := b.clock()
	if err != nil {
		return r, err
	}
	r.Clock = within
	struck, err := f.Strike(ctx, b, m)
	if err != nil {
		return r, fmt.Errorf("%s: %w", f.Name, err)
	}
	unsettled := b.settle(ctx, max(stalled, 3*usual))
	healed, err := f.Heal(ctx, b, m) // in any case: the next row needs the path
	if err = cmp.Or(unsettled, err); err != nil {
		return r, fmt.Errorf("the end of %s: %w", f.Name, err)
	}
	if err := b.await(ctx, "the path after "+f.Name, func() error { return b.bothLive(ctx, m) }); err != nil {
		return r, err
	}
	if err := b.stop(ctx, io); err != nil {
		return r, err
	}
	pids = pids[:len(pids)-1]
	log, err := b.readLog()
	if err != nil {
		return r, err
	}
	lines, err := b.lines(files)
	if err != nil {
		return r, err
	}
	if m.Ours {
		if lines, err = b.actions(ctx); err != nil {
			return r, err
		}
	}
	r.evaluate(log, lines, struck.Add(ahead), healed.Add(ahead))
	return r, undisturbed(lines, struck.Add(ahead))
}

// ErrBusy means that a path was taken for silent that was not: this machine had so much else to do
// that packets of BFD came too late. The row says nothing about the fault.
var ErrBusy = errors.New("the machine was too busy: a whole path was taken for silent")

// undisturbed gives ErrBusy if the host was told of a silent path on the plane that nothing struck,
// or before the fault.
func undisturbed(lines []told, struck time.Time) error {
	for _, l := range lines {
		if l.Event == "notice" && l.Reason == snsd.ReasonBFDDown.String() && (l.Subject == arrayAddr(1) || l.Subject == arrayAddr(0) && l.NS < struck.UnixNano()) {
			return fmt.Errorf("%w: %v, %.1f s after the fault", ErrBusy, l.Subject, float64(l.NS-struck.UnixNano())/1e9)
		}
	}
	return nil
}

// bothLive reports whether both paths are; our agent connects them itself.
func (b *Bed) bothLive(ctx context.Context, m *Method) error {
	if !m.Ours {
		if out, err := b.do(ctx, connect(b.over)); err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
	}
	out, err := b.do(ctx, "cat /sys/class/nvme/nvme*/state && ls /dev/nvme*n1 >/dev/null")
	if out != "live\nlive" || err != nil {
		return fmt.Errorf("%q, %w", out, cmp.Or(err, errNotYet))
	}
	return err
}

// actions asks our agent what it did, a line each for what it was told and for what came of it.
func (b *Bed) actions(ctx context.Context) (lines []told, err error) {
	out, err := b.do(ctx, "/run/bin/snsd status --socket /run/snsd/host.sock -o json")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	var st hostagent.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		return nil, err
	}
	for i := range st.Actions {
		act := &st.Actions[i]
		if act.Kind == "connect" {
			continue
		}
		cause := told{NS: act.Received.UnixNano(), Event: "notice", State: "inactive", Subject: act.Subject, Reason: act.Reason.String()}
		if act.Seq == 0 && act.Reason == snsd.ReasonNone {
			cause.Event, cause.Link = "link", "down"
		}
		lines = append(lines, cause, told{NS: act.Done.UnixNano(), Event: act.Kind, Subject: act.Subject, Action: act})
	}
	return lines, nil
}

// toldOfBoth reports whether the host was told that the array is there, on each plane.
func (b *Bed) toldOfBoth(files []string) error {
	lines, err := b.lines(files)
	if err != nil {
		return err
	}
	for p := range tors {
		if !slices.ContainsFunc(lines, func(l told) bool { return l.Event == "notice" && l.Subject == arrayAddr(p) && l.State == "active" }) {
			return fmt.Errorf("%w: plane %d in %+v", errNotYet, p+1, lines)
		}
	}
	return nil
}

// usual gives how long I/O takes without a fault, at most: the oldest in flight that was seen
// within a time.
func (b *Bed) usual(ctx context.Context, within time.Duration) (most time.Duration, err error) {
	for end := time.Now().Add(within); time.Now().Before(end); {
		if n, _, _, err := b.now(); err == nil {
			most = max(most, time.Duration(n.Oldest))
		}
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return most, nil
}

// settle waits after a fault until I/O flows again, each within a time, and has done so for a
// while.
func (b *Bed) settle(ctx context.Context, each time.Duration) error {
	const quiet, most = 2 * time.Second, 100 * time.Second
	begun, since := time.Now(), time.Now()
	for time.Since(begun) < most {
		n, _, _, err := b.now()
		if err != nil || time.Duration(n.Oldest) > each {
			since = time.Now()
		}
		if time.Since(since) > quiet {
			return nil
		}
		if err := rest(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("for %v there was no moment in which all I/O took %v at most", most, each)
}

// evaluate works out a row. All times are of the machine's clock.
func (r *Row) evaluate(log *iolog.Log, lines []told, struck, healed time.Time) {
	at := struck.UnixNano()
	from := struck // where Last is counted from
	for _, l := range lines {
		local := l.Event == "link" && l.Link == "down"
		if l.NS < at-int64(r.Clock) || l.NS > healed.UnixNano() {
			continue
		}
		if r.Notice < 0 && (local || l.Event == "notice" && l.State == "inactive" && l.Subject == arrayAddr(0)) {
			r.Notice, r.Reason = time.Duration(l.NS-at), l.Reason
			if local {
				r.Reason = "own link"
			}
			from = time.Unix(0, l.NS)
		}
		if l.Action != nil && l.Action.Subject == arrayAddr(0) {
			if r.Done < 0 {
				r.Done = l.Action.Done.Sub(from)
			}
			r.Said = append(r.Said, l.Action.Text())
		}
	}
	until := healed // what begins later was not held up by the fault
	if r.Done >= 0 && r.ours {
		until = from.Add(r.Done)
	}
	r.Errors = log.Errors
	for _, s := range log.IOs {
		of := &r.Stall
		switch {
		case s.Ended < at:
			of = &r.Other
		case s.Begun > healed.UnixNano():
			of = &r.Back
		case s.Begun > until.UnixNano():
			of = &r.Later
		}
		*of = max(*of, time.Duration(s.Ended-s.Begun))
	}
	last := int64(0)
	for _, s := range log.IOs {
		if s.Ended > at && s.Begun < until.UnixNano() && time.Duration(s.Ended-s.Begun) > r.Stall/2 {
			last = max(last, s.Ended)
		}
	}
	r.Slow = slowest(log, at)
	for _, st := range log.States {
		if st.At > at {
			r.States = append(r.States, fmt.Sprintf("%d ms %s %s", (st.At-at)/1e6, st.Controller, st.State))
		}
	}
	r.Beyond = max(0, r.Stall-max(r.Notice, 0))
	if last != 0 {
		r.Last = time.Unix(0, last).Sub(from)
	}
	for _, s := range log.States {
		if s.State == "live" && strings.Contains(s.Address, "traddr="+arrayAddr(0).String()+",") && s.At > healed.UnixNano() && r.Usable < 0 {
			r.Usable = time.Unix(0, s.At).Sub(healed)
		}
	}
	if lost(log, at) && r.Usable < 0 || !lost(log, at) {
		// It was live all the time, or again before the fault was over.
		r.Usable = max(r.Usable, 0)
	}
}

// lost reports whether the kernel gave the path up after the fault.
func lost(log *iolog.Log, at int64) bool {
	return slices.ContainsFunc(log.States, func(s iolog.State) bool { return s.At > at && s.State != "live" })
}

// slowest says of the I/Os after a moment that took longest when they were.
func slowest(log *iolog.Log, at int64) (list []string) {
	var after []iolog.IO
	for _, s := range log.IOs {
		if s.Ended > at {
			after = append(after, s)
		}
	}
	slices.SortFunc(after, func(a, b iolog.IO) int { return cmp.Compare(b.Ended-b.Begun, a.Ended-a.Begun) })
	for _, s := range after[:min(12, len(after))] {
		list = append(list, fmt.Sprintf("%d..%d ms", (s.Begun-at)/1e6, (s.Ended-at)/1e6))
	}
	return list
}
