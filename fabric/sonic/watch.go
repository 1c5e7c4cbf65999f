package sonic

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/openinof/inof/fabric"
)

const (
	// watchRound is how often all ports are read, beside the events of the databases.
	watchRound = time.Second
	// confirmWithin is how long orchagent may take for a port before that is worth a warning: it
	// took less than 2 s on a busy machine.
	confirmWithin = 3 * time.Second
	watchdogSays  = "PFC_WD_ACTION" // channel of COUNTERS_DB
)

// Channels that the programs of a switch are subscribed to as long as they run.
var programs = []struct{ name, channel, without string }{
	{"orchagent", "PORT_TABLE_CHANNEL@0", "nothing that is configured reaches the ASIC, neither ports that are shut nor rules"},
	{"syncd", "ASIC_STATE_CHANNEL@1", "nothing reaches the ASIC, and no counter moves"},
}

// view is a port as it was last announced, and what it follows from.
type view struct {
	kernel fabric.Event
	row    portRow
	at     time.Time // the row was read after it
	told   fabric.Port
}

// asked is a change of a port's administrative state that is not confirmed yet.
type asked struct {
	up      bool
	since   time.Time
	written time.Time // zero: not yet
	err     error
}

// HandleEvents implements fabric.EventHandler.
func (s *Source) HandleEvents(handle func(fabric.Event)) {
	if h, ok := s.Dataplane.(fabric.EventHandler); ok {
		s.handle = handle
		h.HandleEvents(s.kernelEvent)
	}
}

// HandleHealth implements fabric.HealthTeller.
func (s *Source) HandleHealth(handle func(port string, h fabric.Health)) { s.tell = handle }

// Events implements fabric.Dataplane; nothing comes after HandleEvents.
func (s *Source) Events() <-chan fabric.Event {
	if s.handle != nil {
		return nil
	}
	return s.Dataplane.Events()
}

// kernelEvent takes what the kernel says of a port.
func (s *Source) kernelEvent(ev fabric.Event) {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	name := ev.Port.Name
	v := s.views[name]
	if v == nil {
		v = &view{}
		if rows, err := s.ports.read([]string{name}); err == nil {
			v.row = rows[name]
		}
	}
	v.kernel = ev
	was := v.told
	v.told = v.row.of(ev.Port)
	ev.ShutByUs = ev.Kind == fabric.PortAdded && v.row.mine(byErrorDown)
	if s.views[name] = v; ev.Kind == fabric.PortRemoved {
		delete(s.views, name)
	}
	if ev.Kind != fabric.PortChanged || was != v.told {
		ev.Port = v.told
		s.handle(ev)
	}
}

// names lists the ports that the kernel has.
func (s *Source) names() []string {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	return slices.Sorted(maps.Keys(s.views))
}

// readPorts reads ports and announces what has changed.
func (s *Source) readPorts(names []string) error {
	at := time.Now()
	rows, err := s.ports.read(names)
	if err != nil {
		return err
	}
	now := time.Now()
	s.viewing.Lock()
	defer s.viewing.Unlock()
	for name, row := range rows {
		v := s.views[name]
		if v == nil {
			continue
		}
		v.row, v.at = row, at
		if is := row.of(v.kernel.Port); is != v.told {
			v.told = is
			s.handle(fabric.Event{Kind: fabric.PortChanged, Port: is, At: now, Changes: v.kernel.Changes})
		}
	}
	return nil
}

// watch follows the databases until ctx ends.
func (s *Source) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.listen(ctx)
		if ctx.Err() == nil {
			s.note(err)
			s.round()
			select {
			case <-time.After(watchRound):
			case <-ctx.Done():
			}
		}
	}
}

// listen hears events, and reads everything now and then, until the connection fails.
func (s *Source) listen(ctx context.Context) error {
	sub, err := subscribe(ctx, s.counters.address, watchdogSays, "__keyspace@0__:PORT_TABLE:*", "__keyspace@1__:ASIC_STATE:SAI_OBJECT_TYPE_PORT:*")
	if err != nil {
		return err
	}
	defer sub.close()
	for round := time.Now(); ; {
		if now := time.Now(); !now.Before(round) {
			s.round()
			round = now.Add(watchRound)
		}
		m, ok, err := sub.next(round)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s.heard.Add(1)
		if m.channel == watchdogSays {
			s.verdict(m.text)
		} else if key, ok := m.keyOf("0"); ok {
			_ = s.readPorts([]string{key[len("PORT_TABLE:"):]}) // else the round reads it
		} else {
			_ = s.readPorts(s.names())
		}
	}
}

// round reads all ports, and looks after what was asked for.
func (s *Source) round() {
	names := s.names()
	if err := s.readPorts(names); err == nil {
		s.settleAsked()
		s.lookForPrograms()
		s.lookForMotion(names, time.Now())
	}
}

// settleAsked writes again what could not be written, and drops what is confirmed, or what another
// program has changed since.
func (s *Source) settleAsked() {
	s.viewing.Lock()
	views := make(map[string]view, len(s.views))
	for n, v := range s.views {
		views[n] = *v
	}
	s.viewing.Unlock()
	s.asking.Lock()
	defer s.asking.Unlock()
	for name, v := range views {
		a, row := s.asked[name], v.row
		switch {
		case a == nil:
			if row.want == "up" && len(row.ours) > 0 { // another program has opened it
				_, _ = s.config.do([]string{"DEL", ourPorts + name})
			}
		case a.written.IsZero():
			a.err = s.write(name, a, &row)
		case row.is(a.up) || v.at.After(a.written) && (row.want == "up") != a.up:
			delete(s.asked, name)
		}
	}
}

// SetAdmin implements fabric.Dataplane: a port of the switch is shut in the ASIC, by way of its
// configuration; any other is the kernel's alone.
func (s *Source) SetAdmin(port string, up bool) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	rows, err := s.ports.read([]string{port})
	row := rows[port]
	if err == nil && !row.there {
		return s.Dataplane.SetAdmin(port, up)
	}
	a := &asked{up: up, since: time.Now(), err: err}
	s.asked[port] = a
	if err == nil {
		a.err = s.write(port, a, &row)
	}
	return a.err
}

func (s *Source) write(port string, a *asked, row *portRow) (err error) {
	if a.up {
		err = s.ports.open(port, byErrorDown, row)
	} else {
		err = s.ports.shut(port, byErrorDown, row, time.Now())
	}
	if err == nil {
		a.written = time.Now()
	}
	return err
}

// lookForPrograms finds programs of the switch that do not run.
func (s *Source) lookForPrograms() {
	ask := []string{"PUBSUB", "NUMSUB"}
	for _, p := range programs {
		ask = append(ask, p.channel)
	}
	answers, err := s.counters.all([][]string{ask})
	if err != nil {
		return
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	for i, p := range programs {
		n, ok := number(at(answers[0], 2*i+1))
		switch st := &s.missing[i]; {
		case ok && n > 0:
			st.seen, st.rounds = true, 0
		case ok && (st.seen || p.name == "orchagent"): // syncd may be reached by another way than Redis
			st.rounds++
		}
	}
}

// lookForMotion finds ports that have sent frames of ours while no counter of the ASIC moved.
func (s *Source) lookForMotion(names []string, now time.Time) {
	s.asking.Lock()
	due := !now.Before(s.moves.next)
	if due {
		s.moves.next = now.Add(motionRound)
	}
	s.asking.Unlock()
	if !due {
		return
	}
	for _, name := range names {
		k, err := s.Dataplane.Counters(name)
		var h fabric.Health
		if err == nil {
			err = s.readCounters(name, fabric.FieldCounters, &h)
		}
		s.asking.Lock()
		m := s.moves.ports[name]
		switch c := h.Counters; {
		case err != nil || !h.Has(fabric.FieldCounters):
			delete(s.moves.ports, name)
		case m == nil || c.RxFrames+c.TxFrames != m.total:
			s.moves.ports[name] = &motion{total: c.RxFrames + c.TxFrames, sent: k.TxFrames}
		case m.before && k.TxFrames != m.sent:
			m.still = true // sent since the round before the last: the ASIC's counters were read since
		default:
			m.before = m.before || k.TxFrames != m.sent
		}
		s.asking.Unlock()
	}
}

// verdict takes what the watchdog says: ["<queue>","storm"|"restore"].
func (s *Source) verdict(text string) {
	var words []string
	if json.Unmarshal([]byte(text), &words) != nil || len(words) < 2 || s.tell == nil {
		return
	}
	for _, port := range s.names() {
		id, err := s.lookUp(port)
		q := slices.Index(id.queues[:], words[0])
		if err != nil || q < 0 {
			continue
		}
		h := fabric.Health{At: time.Now()}
		if err := s.readCounters(port, fabric.FieldVerdict, &h); err != nil || h.Guarded&(1<<q) == 0 {
			return
		}
		h.Valid = fabric.FieldVerdict
		if h.Dropping &^= 1 << q; words[1] == "storm" { // the queue's row follows the message
			h.Dropping |= 1 << q
		}
		s.tell(port, h)
		return
	}
}

// Doubts implements fabric.Doubter.
func (s *Source) Doubts(now time.Time) (list []fabric.Doubt) {
	s.asking.Lock()
	defer s.asking.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.asked)) {
		a := s.asked[name]
		if now.Sub(a.since) < confirmWithin {
			continue
		}
		list = append(list, fabric.Doubt{Port: name, Up: a.up, Since: a.since, Err: a.err})
	}
	for i, p := range programs {
		if s.missing[i].rounds > 1 {
			list = append(list, fabric.Doubt{Program: p.name, Without: p.without})
		}
	}
	return list
}
