package fence

import (
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/testbed/fence/round"
)

// What a round varies, beside the place of the copy.
var (
	places   = []round.Place{round.Host, round.Network, round.Receive, round.Execute}
	causes   = []string{"link-down", "pfc-storm", "packet-error", "bfd-down", "zone-changed", "ip-changed", "aged-out", "own-link", "tor-killed"}
	policies = []string{"off", "prefer", "require"}
)

// hold is how long a copy waits in rounds with daemons: longer than these need in an emulated machine,
// and not so long that the keep-alive of the host's kernel fails before they act.
const hold = 6 * time.Second

// kato is the keep-alive time-out of the host's controllers, the kernel's own.
const kato = 5 * time.Second

func spec(place round.Place, cause, policy string, target bool) round.Spec {
	hold := hold
	if place == round.Execute { // the array answers before the host's kernel leaves by itself
		hold = 4 * time.Second
	}
	return round.Spec{Place: place, Hold: hold, KATO: kato, Cause: cause, Policy: policy, Target: target}
}

// Name is what a pattern chooses a round by.
func Name(s round.Spec) string {
	return fmt.Sprintf("%s/%s/%s/%s", s.Place, s.Cause, s.Policy, map[bool]string{true: "agent", false: "switches"}[s.Target])
}

// Chosen are the rounds of CI: one of each place without a fence, eight with the default policy, and one
// that requires a fence. They stand in an order in which agents are seldom started anew.
func Chosen() []round.Spec {
	return []round.Spec{
		spec(round.Host, "bfd-down", "off", false),
		spec(round.Network, "bfd-down", "off", false),
		spec(round.Receive, "link-down", "off", false),
		spec(round.Execute, "link-down", "off", false),
		spec(round.Host, "bfd-down", "prefer", false),
		spec(round.Network, "link-down", "prefer", false),
		spec(round.Host, "link-down", "prefer", false),
		spec(round.Host, "bfd-down", "prefer", true),
		spec(round.Network, "bfd-down", "prefer", true),
		spec(round.Receive, "link-down", "prefer", true),
		spec(round.Execute, "link-down", "prefer", true),
		spec(round.Execute, "own-link", "prefer", true),
		spec(round.Execute, "bfd-down", "require", true),
	}
}

// All are the rounds of all combinations.
func All() (list []round.Spec) {
	for _, target := range []bool{false, true} {
		for _, policy := range policies {
			for _, cause := range causes {
				for _, place := range places {
					list = append(list, spec(place, cause, policy, target))
				}
			}
		}
	}
	return list
}

// levels that an agent reports.
const (
	levelArray   = "array"
	levelNetwork = "network"
)

// fenceable reports whether the switches alone can give level network within the time that an agent
// waits. They cannot for causes that only notify; nor when the array's switch is dead; nor before a queue
// that is paused has sent what it holds.
func fenceable(s round.Spec) bool {
	return slices.Contains([]string{"link-down", "pfc-storm", "packet-error"}, s.Cause) || slices.Contains([]string{"bfd-down", "own-link"}, s.Cause) && s.Place != round.Network
}

// tooLate reports whether a round of daemons shows nothing: nothing is lost, and the fault was not noticed
// while the copy waited, or without a fence A was sent again when it waited no longer.
func tooLate(s round.Spec, r round.Result) bool {
	return s.Case == 0 && !r.Lost && (r.Noticed < 0 || r.Struck+r.Noticed >= s.Hold || s.Policy == "off" && r.Acked >= s.Hold)
}

// Judge returns what is wrong with a round, and whether a loss in it is counted apart.
func Judge(s round.Spec, r round.Result) (wrong []string, apart bool) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if s.Policy == "off" {
		return nil, false // judged together: losses must be seen
	}
	inArray := s.Place == round.Receive || s.Place == round.Execute
	switch {
	case r.Lost && r.Level == levelArray:
		bad("an acknowledged write is lost behind a fence of the array")
	case r.Lost && s.Policy == "require":
		bad("an acknowledged write is lost though a fence is required")
	case r.Lost && r.Level == levelNetwork && !inArray:
		bad("an acknowledged write is lost behind a fence of the network, before it reached the array")
	case r.Lost:
		apart = true
	}
	// A path without a fault may finish what is in flight before it is left: then nothing is fenced.
	finished := slices.Contains([]string{"zone-changed", "ip-changed", "aged-out"}, s.Cause) && r.Level == "" && r.Copies == 1 && !r.Lost
	// The array's agent is gone where its stop is the cause.
	if s.Target && s.Cause != "aged-out" && !finished && r.Level != levelArray {
		bad("the array has our agent, and there was no fence by it: %q", r.Report)
	}
	if !s.Target && fenceable(s) && r.Level != levelNetwork && r.Level != levelArray {
		bad("the switches can fence this, and did not: %q", r.Report)
	}
	if slices.Contains([]string{levelArray, levelNetwork}, r.Level) && !r.Other {
		bad("there is a fence, and I/O does not go on over the other path")
	}
	return wrong, apart
}
