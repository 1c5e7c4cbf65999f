package link

import (
	"maps"
	"time"

	"github.com/openinof/inof/inof/wire"
)

const (
	// failsAnew is how long after a port has failed it is no news that it fails again.
	failsAnew = time.Second
	// mostFailed is how many ports of a device that have failed are remembered.
	mostFailed = 1024
)

// failing are the ports of a device that have failed of late. One that fails, recovers and fails
// again is a loss for those who hear of it, but none that may go before others while its device has
// to rest: a port with many hosts would make as much work as all others together.
type failing map[string]failure

// failure is what a device has said of a port.
type failure struct {
	at   time.Time // when it failed
	over bool      // it has recovered since
}

// tellsLoss reports whether a message tells of a loss, but for what fails again.
func (f *failing) tellsLoss(u *wire.Update, now time.Time) bool {
	loss := u.LosesHost()
	for i := range u.Downs {
		r := &u.Downs[i]
		last, had := (*f)[r.Port]
		switch {
		case r.Is():
			loss = loss || !last.over || now.Sub(last.at) >= failsAnew
			f.put(r.Port, now)
		case had:
			last.over = true
			(*f)[r.Port] = last
		}
	}
	return loss
}

// put remembers that a port has failed.
func (f *failing) put(port string, now time.Time) {
	if *f == nil {
		*f = failing{}
	}
	if len(*f) >= mostFailed {
		maps.DeleteFunc(*f, func(_ string, last failure) bool { return now.Sub(last.at) >= failsAnew })
	}
	if _, had := (*f)[port]; had || len(*f) < mostFailed {
		(*f)[port] = failure{at: now}
	}
}
