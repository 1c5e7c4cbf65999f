package sonic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openinof/inof/fabric"
)

// How queues mark for congestion stands in CONFIG_DB: QUEUE|port|queues names a WRED_PROFILE, where
// queues is a number or a range of them (sonic-queue.yang, sonic-wred-profile.yang). SONiC has no
// table of thresholds that something chooses while it runs, AI-ECN: whoever does so there writes
// profiles, so what is read is always STATIC.

// profileFields are what a WRED_PROFILE has of frames that no meter has coloured, in bytes and
// percent.
var profileFields = []string{"ecn", "green_min_threshold", "green_max_threshold", "green_drop_probability"}

// queueSpans are the ways in which keys of QUEUE name queues.
var queueSpans = func() (all []queueSpan) {
	for from := range fabric.Priorities {
		all = append(all, queueSpan{strconv.Itoa(from), from, from})
		for to := from + 1; to < fabric.Priorities; to++ {
			all = append(all, queueSpan{fmt.Sprintf("%d-%d", from, to), from, to})
		}
	}
	return all
}()

type queueSpan struct {
	key      string
	from, to int
}

// readMarking reads the thresholds of a port's queues; of none that marks nothing.
func (s *Source) readMarking(port string, h *fabric.Health) error {
	var ask [][]string
	for _, q := range queueSpans {
		ask = append(ask, []string{"HMGET", "QUEUE|" + port + "|" + q.key, "wred_profile"})
	}
	answers, err := s.config.do(ask...)
	if err != nil {
		return err
	}
	var profiles [fabric.Priorities]string
	ask = nil
	for i, q := range queueSpans {
		name := strings.TrimSuffix(strings.TrimPrefix(at(answers[i], 0).text, "[WRED_PROFILE|"), "]") // so until 202106
		if name == "" {
			continue
		}
		for at := q.from; at <= q.to; at++ {
			profiles[at] = name
		}
	}
	var queues []int
	for q, name := range profiles {
		if name != "" {
			queues, ask = append(queues, q), append(ask, append([]string{"HMGET", "WRED_PROFILE|" + name}, profileFields...))
		}
	}
	if len(ask) == 0 {
		return nil
	}
	if answers, err = s.config.do(ask...); err != nil {
		return err
	}
	for i, q := range queues {
		if m, ok := markingOf(answers[i]); ok {
			h.Marking[q] = m
			h.Valid |= fabric.FieldMarking
		}
	}
	return nil
}

// markingOf reads profileFields; false: there is no such profile, it does not mark, or it does not
// say where.
func markingOf(list []value) (fabric.Marking, bool) {
	ecn := at(list, 0).text
	low, ok1 := number(at(list, 1))
	high, ok2 := number(at(list, 2))
	percent, ok3 := number(at(list, 3))
	if !ok1 || !ok2 || !ok3 || percent > 100 || ecn != "ecn_all" && !strings.Contains(ecn, "green") {
		return fabric.Marking{}, false
	}
	return fabric.Marking{Mode: fabric.MarkingStatic, Low: low, High: high, Probability: float64(percent) / 100}, true
}
