package chaos

import (
	"testing"
	"time"
)

// Clocks of switches are set, by a second to 40 years and back, while cables are pulled and daemons
// are killed: no notice is unexpected, none is missing.
func TestClocksAreSetWhilePortsFlap(t *testing.T) {
	rep := run(t, Options{Name: "chaos-clock", Kinds: []Kind{Clock, Clock, Clock, Flap, Carrier, Kill}, Duration: 10 * time.Second, Storm: 10 * time.Second}, 10*time.Second)
	if rep.Faults[Clock] < 5 {
		t.Errorf("too little happened: %v", rep.Faults)
	}
}
