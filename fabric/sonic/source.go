package sonic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/fabric"
)

// Numbers of SONiC's databases (database_config.json).
const (
	applDB     = 0
	countersDB = 2
	stateDB    = 6
)

// DefaultAddress is where SONiC's own Redis listens.
const DefaultAddress = "/var/run/redis/redis.sock"

// Source is a Dataplane whose ports' health comes from SONiC's databases.
type Source struct {
	fabric.Dataplane
	log      *slog.Logger
	counters db
	state    db
	config   db
	appl     db
	asic     db
	ports    portDB
	reads    atomic.Uint64
	errors   atomic.Uint64
	heard    atomic.Uint64
	failing  atomic.Bool
	handle   func(fabric.Event) // nil: the dataplane's Events has them
	tell     func(port string, h fabric.Health)

	mu     sync.Mutex
	ids    map[string]*ids
	errsOf map[string]*errorCount

	viewing sync.Mutex // also while an event is handled: they come one at a time
	views   map[string]*view

	asking  sync.Mutex
	asked   map[string]*asked
	missing [2]struct { // of programs
		seen   bool
		rounds int
	}
	moves struct {
		next  time.Time
		ports map[string]*motion
	}
}

// motion is what the counters of a port said when they last moved.
type motion struct {
	total, sent   uint64 // of the ASIC; by the kernel
	before, still bool   // frames were sent since; and the counters are still where they were, a round later
}

// motionRound is how often the ASIC's counters are compared with what the kernel has sent. They are
// polled by SONiC each second, each 30 s at the slowest.
const motionRound = 40 * time.Second

// Stats are what a Source has counted.
type Stats struct {
	Reads  uint64 `json:"reads"`
	Errors uint64 `json:"errors"` // reads for which Redis did not answer
	Heard  uint64 `json:"heard"`  // events of the databases
}

// ids are the names of a port's objects in COUNTERS_DB.
type ids struct {
	port    string
	queues  [fabric.Priorities]string
	groups  [fabric.Priorities]string // priority groups
	watched [fabric.Priorities]bool   // the queue has a PFC watchdog
	until   time.Time                 // then they are looked up again
}

// idLife is how long names are kept: a port that is split gets other ones, a
// watchdog may be started.
const idLife = 30 * time.Second

var _ fabric.HealthReader = (*Source)(nil)

// New puts a Source before a dataplane. The address is host:port or the path of a
// unix socket; nothing is opened yet. A log may be nil.
func New(dp fabric.Dataplane, address string, log *slog.Logger) *Source {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Source{Dataplane: dp, log: log, ids: make(map[string]*ids), errsOf: make(map[string]*errorCount),
		counters: db{address: address, number: countersDB}, state: db{address: address, number: stateDB}, config: db{address: address, number: configDB},
		appl: db{address: address, number: applDB}, asic: db{address: address, number: asicDB},
		views: make(map[string]*view), asked: make(map[string]*asked)}
	s.ports = portDB{config: &s.config, appl: &s.appl, counters: &s.counters, asic: &s.asic}
	s.moves.ports = make(map[string]*motion)
	return s
}

// Run runs the dataplane.
func (s *Source) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer s.close()
	defer watching.Wait()
	defer stop()
	if s.handle != nil {
		watching.Go(func() { s.watch(ctx) })
	}
	return s.Dataplane.Run(ctx)
}

func (s *Source) close() {
	for _, d := range []*db{&s.counters, &s.state, &s.config, &s.appl, &s.asic} {
		d.close()
	}
}

// CarrierSource implements fabric.CarrierTeller.
func (s *Source) CarrierSource() (source fabric.CarrierSource, why string) {
	if d, ok := s.Dataplane.(fabric.CarrierTeller); ok {
		return d.CarrierSource()
	}
	return fabric.CarrierNetlink, ""
}

// LostFrames implements fabric.LossReader; none where the dataplane cannot say.
func (s *Source) LostFrames() []fabric.LostFrames {
	d, ok := s.Dataplane.(fabric.LossReader)
	if !ok {
		return nil
	}
	return d.LostFrames()
}

// SendStamped implements fabric.SendStamper, without a stamp where the dataplane has none.
func (s *Source) SendStamped(port string, frame []byte) (time.Time, error) {
	if d, ok := s.Dataplane.(fabric.SendStamper); ok {
		return d.SendStamped(port, frame)
	}
	return time.Time{}, s.Dataplane.Send(port, frame)
}

// SetAccess changes which ports belong to the dataplane, if it can.
func (s *Source) SetAccess(access []string) error {
	d, ok := s.Dataplane.(interface{ SetAccess([]string) error })
	if !ok {
		return errors.New("this dataplane cannot change its ports")
	}
	return d.SetAccess(access)
}

// Stats returns a copy of what was counted.
func (s *Source) Stats() Stats { return Stats{s.reads.Load(), s.errors.Load(), s.heard.Load()} }

// Counters implements fabric.Dataplane: what the ASIC counts, and nothing before it was read; the
// kernel's of a port that is not the switch's. Changes of carrier are the kernel's.
func (s *Source) Counters(port string) (fabric.Counters, error) {
	h, err := s.Health(port, fabric.FieldsOfCounters)
	if err == nil && !h.Has(fabric.FieldCounters) {
		err = fmt.Errorf("port %q: the ASIC's counters cannot be read, or do not move", port)
	}
	if err != nil {
		return fabric.Counters{}, err
	}
	h.Counters.RxCRC = h.RxCRC
	return h.Counters, nil
}

// Health implements fabric.HealthReader. Changes of carrier are the kernel's; everything else is the
// ASIC's, or missing where Redis does not have it.
func (s *Source) Health(port string, want fabric.Fields) (fabric.Health, error) {
	var h fabric.Health
	if want&fabric.FieldCounters != 0 {
		c, err := s.Dataplane.Counters(port)
		if err != nil {
			return h, err
		}
		h.Counters = c
	}
	s.reads.Add(1)
	var err error
	if want&^(fabric.FieldRxPower|fabric.FieldOptic|fabric.FieldSpeed|fabric.FieldMarking) != 0 {
		if !s.still(port) {
			err = s.readCounters(port, want, &h)
		}
	}
	if err == nil && want&fabric.FieldRxPower != 0 {
		err = s.readPower(port, &h)
	}
	if err == nil && want&fabric.FieldOptic != 0 {
		err = s.readOptic(port, &h)
	}
	if err == nil && want&fabric.FieldSpeed != 0 {
		err = s.readSpeed(port, &h)
	}
	if err == nil && want&fabric.FieldMarking != 0 {
		err = s.readMarking(port, &h)
	}
	s.note(err)
	if err != nil && h.Valid == 0 {
		return h, fmt.Errorf("port %q: %w", port, err)
	}
	h.At = time.Now()
	h.Valid &= want
	return h, nil
}

// note counts failures, and logs the first and the last one.
func (s *Source) note(err error) {
	if err != nil {
		s.errors.Add(1)
	}
	if s.failing.Swap(err != nil) != (err != nil) {
		if err != nil {
			s.log.Warn("counters of the switch cannot be read, faults that need them are not seen", "err", err)
		} else {
			s.log.Info("counters of the switch are read again")
		}
	}
}

func (s *Source) readCounters(port string, want fabric.Fields, h *fabric.Health) error {
	id, err := s.lookUp(port)
	if err != nil {
		return err
	}
	if id.port == "" { // not the switch's: the kernel's counters are what there is
		h.Valid |= fabric.FieldCounters
		return nil
	}
	h.Counters = fabric.Counters{CarrierChanges: h.Counters.CarrierChanges}
	commands := [][]string{append([]string{"HMGET", "COUNTERS:" + id.port}, portFields...)}
	var take []func(answers [][]value) // what is to be done with the answers to commands
	ask := func(key string, fields ...string) int {
		commands = append(commands, append([]string{"HMGET", "COUNTERS:" + key}, fields...))
		return len(commands) - 1
	}
	for q := range fabric.Priorities {
		if want&(fabric.FieldDeadlocks|fabric.FieldRestored|fabric.FieldVerdict) != 0 && id.watched[q] {
			i := ask(id.queues[q], watchdogStatus, watchdogDeadlocks, watchdogRestored, watchdogAction)
			take = append(take, func(answers [][]value) { watchdog(q, answers[i], h) })
		}
		if want&(fabric.FieldECN|fabric.FieldBufferPeak) != 0 && id.queues[q] != "" {
			i, j := ask(id.queues[q], queueMarked, queuePeak), ask(id.groups[q], headroomPeak)
			take = append(take, func(answers [][]value) { perQueue(q, answers[i], answers[j], h) })
		}
	}
	answers, err := s.counters.do(commands...)
	if err != nil {
		return err
	}
	portCounters(answers[0], h)
	s.damaged(port, answers[0], h)
	for _, t := range take {
		t(answers)
	}
	return nil
}

// lookUp finds the objects of a port.
func (s *Source) lookUp(port string) (ids, error) {
	now := time.Now()
	s.mu.Lock()
	id := s.ids[port]
	s.mu.Unlock()
	if id != nil && now.Before(id.until) {
		return *id, nil
	}
	names := []string{"HMGET", "COUNTERS_QUEUE_NAME_MAP"}
	groups := []string{"HMGET", "COUNTERS_PG_NAME_MAP"}
	for q := range fabric.Priorities {
		names = append(names, port+":"+strconv.Itoa(q))
		groups = append(groups, port+":"+strconv.Itoa(q))
	}
	answers, err := s.counters.do([]string{"HMGET", "COUNTERS_PORT_NAME_MAP", port}, names, groups)
	if err != nil {
		return ids{}, err
	}
	id = &ids{port: at(answers[0], 0).text, until: now.Add(idLife)}
	var ask [][]string
	for q := range fabric.Priorities {
		id.queues[q], id.groups[q] = at(answers[1], q).text, at(answers[2], q).text
		ask = append(ask, []string{"HMGET", "COUNTERS:" + id.queues[q], watchdogStatus, watchdogDeadlocks})
	}
	if answers, err = s.counters.do(ask...); err != nil {
		return ids{}, err
	}
	for q := range fabric.Priorities {
		id.watched[q] = id.queues[q] != "" && at(answers[q], 0).ok
	}
	s.mu.Lock()
	s.ids[port] = id
	s.mu.Unlock()
	return *id, nil
}

// still reports whether the port's counters stand while frames are sent.
func (s *Source) still(port string) bool {
	s.asking.Lock()
	defer s.asking.Unlock()
	m := s.moves.ports[port]
	return m != nil && m.still
}

func (s *Source) readPower(port string, h *fabric.Health) error {
	answers, err := s.state.do(append([]string{"HMGET", "TRANSCEIVER_DOM_SENSOR|" + port}, powerFields...))
	if err != nil {
		return err
	}
	least := math.Inf(1)
	for _, v := range answers[0] {
		text := strings.TrimSuffix(v.text, "dBm")
		if p, err := strconv.ParseFloat(text, 64); err == nil && p > -40 && p < 20 { // else N/A, -inf or a lane not in use
			least = min(least, p)
		}
	}
	if !math.IsInf(least, 0) {
		h.RxPower = int(math.Round(least * 1000))
		h.Valid |= fabric.FieldRxPower
	}
	return nil
}

// readOptic reads what the module tells beside what it receives.
func (s *Source) readOptic(port string, h *fabric.Health) error {
	answers, err := s.state.do(append([]string{"HMGET", "TRANSCEIVER_DOM_SENSOR|" + port}, opticFields...),
		[]string{"HMGET", "TRANSCEIVER_INFO|" + port, "manufacturer", "serial"})
	if err == nil {
		optic(answers[0], answers[1], h)
	}
	return err
}

// readSpeed reads how fast the link is, in Mbit/s there.
func (s *Source) readSpeed(port string, h *fabric.Health) error {
	answers, err := s.state.do([]string{"HMGET", "PORT_TABLE|" + port, "speed"})
	if err != nil {
		return err
	}
	if n, ok := number(at(answers[0], 0)); ok && n > 0 && n < 1e9 {
		h.Speed = n * 1_000_000
		h.Valid |= fabric.FieldSpeed
	}
	return nil
}

func at(list []value, i int) value {
	if i >= len(list) {
		return value{}
	}
	return list[i]
}
