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
	reads    atomic.Uint64
	errors   atomic.Uint64
	failing  atomic.Bool

	mu    sync.Mutex
	ports map[string]*ids
}

// Stats are what a Source has counted.
type Stats struct {
	Reads  uint64 `json:"reads"`
	Errors uint64 `json:"errors"` // reads for which Redis did not answer
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
	return &Source{Dataplane: dp, log: log, ports: make(map[string]*ids),
		counters: db{address: address, number: countersDB}, state: db{address: address, number: stateDB}, config: db{address: address, number: configDB}}
}

// Run runs the dataplane.
func (s *Source) Run(ctx context.Context) error {
	defer s.counters.close()
	defer s.state.close()
	defer s.config.close()
	return s.Dataplane.Run(ctx)
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
func (s *Source) Stats() Stats { return Stats{s.reads.Load(), s.errors.Load()} }

// Health implements fabric.HealthReader. Carrier changes are the kernel's; everything
// else is the ASIC's, or not told when Redis does not have it. When Redis does not
// answer at all the carrier changes are told all the same.
func (s *Source) Health(port string, want fabric.Fields) (fabric.Health, error) {
	var h fabric.Health
	if want&fabric.FieldCounters != 0 {
		c, err := s.Dataplane.Counters(port)
		if err != nil {
			return h, err
		}
		h.Counters, h.Valid = c, fabric.FieldCounters
	}
	s.reads.Add(1)
	var err error
	if want&^(fabric.FieldRxPower|fabric.FieldOptic|fabric.FieldSpeed|fabric.FieldMarking) != 0 {
		err = s.readCounters(port, want, &h)
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
	if err != nil || id.port == "" {
		return err
	}
	commands := [][]string{append([]string{"HMGET", "COUNTERS:" + id.port}, portFields...)}
	var take []func(answers [][]value) // what is to be done with the answers to commands
	ask := func(key string, fields ...string) int {
		commands = append(commands, append([]string{"HMGET", "COUNTERS:" + key}, fields...))
		return len(commands) - 1
	}
	for q := range fabric.Priorities {
		if want&(fabric.FieldDeadlocks|fabric.FieldRestored) != 0 && id.watched[q] {
			i := ask(id.queues[q], watchdogStatus, watchdogDeadlocks, watchdogRestored)
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
	for _, t := range take {
		t(answers)
	}
	return nil
}

// lookUp finds the objects of a port.
func (s *Source) lookUp(port string) (ids, error) {
	now := time.Now()
	s.mu.Lock()
	id := s.ports[port]
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
	s.ports[port] = id
	s.mu.Unlock()
	return *id, nil
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
