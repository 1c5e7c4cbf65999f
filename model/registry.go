package model

import (
	"fmt"
	"strings"
)

// Part is a place in a fabric where one mechanism may stand for another.
type Part string

// The parts, named as the keys of a scenario.
const (
	PartCongestion Part = "congestion" // Controller: the pace of a sender
	PartReceiver   Part = "receiver"   // Receiver: what answers a frame out of its turn
	PartBalancer   Part = "balancer"   // Balancer: which of equal ways a frame takes
	PartScheduler  Part = "scheduler"  // Scheduler: which queue sends next
	PartBuffer     Part = "model"      // Buffer: who gets room in a switch
	PartStage      Part = "stages"     // Stage: what a switch does to a passing frame
	PartTuner      Part = "tuners"     // Tuner: what a switch changes by the clock
)

// Parts lists all parts in the order in which they are documented, with what each decides.
var Parts = []struct {
	Part  Part
	About string
}{
	{PartCongestion, "at what pace, and with how much in flight, a queue pair sends; and what its receiver tells it"},
	{PartReceiver, "what a NIC answers to a frame that does not come in its turn"},
	{PartBalancer, "which of the equal ways a frame takes at a switch"},
	{PartScheduler, "which queue of a switch port sends next"},
	{PartBuffer, "which frames find room in a switch, and when a peer is paused"},
	{PartStage, "what a switch does to passing frames, one after the other"},
	{PartTuner, "what a switch changes by the clock"},
}

// Mechanism is one entry of the registry: from it follow the keys of scenarios, `inofctl
// fabric list`, the reference of keys and the errors.
type Mechanism struct {
	Part  Part
	Kind  string // its name in a scenario
	About string // one line
	New   func() Settings
	Sets  []Set // published sets of values; the first is what New gives, if there are any
}

// Set is a named set of values of a mechanism.
type Set struct {
	Name, About string
	New         func() Settings
}

// Settings are the values of a mechanism: a pointer to a struct whose fields carry their key
// (`yaml:"..."`) and what they mean (`about:"..."`).
type Settings interface{ Check() error }

// mechanisms is the registry: a mechanism is one file and one line here.
var mechanisms = []*Mechanism{
	&dcqcnMechanism,
	&hpccMechanism,
	&timelyMechanism,
	&dctcpMechanism,
	&swiftMechanism,
	&ctccMechanism,
	&tcpMechanism,
	&ecmpMechanism,
	&flowletMechanism,
	&sprayMechanism,
	&fixedMechanism,
	&nslbMechanism,
	&nsPathsMechanism,
	&priorityMechanism,
	&etsMechanism,
	&referenceMechanism,
	&cellsMechanism,
	&fastCNPMechanism,
	&iqcnMechanism,
	&npccMechanism,
	&miceMechanism,
	&dynamicECNMechanism,
	&aiECNMechanism,
	&flexBufferMechanism,
	&degradedMechanism,
	&vxlanMechanism,
	&goBackNMechanism,
	&selectiveMechanism,
	&reorderMechanism,
	&duplicateACKsMechanism,
}

// Mechanisms lists those of a part.
func Mechanisms(part Part) []*Mechanism {
	var out []*Mechanism
	for _, m := range mechanisms {
		if m.Part == part {
			out = append(out, m)
		}
	}
	return out
}

// NewSettings gives the default values of a mechanism by its kind, the name of a set, or
// both. Either may be empty; a set's name alone, in place of the kind too, is enough.
func NewSettings(part Part, kind, set string) (Settings, error) {
	known := Mechanisms(part)
	if kind == "" {
		kind = set
	}
	for _, m := range known {
		if m.Kind == kind && (set == "" || set == kind) {
			return m.New(), nil
		}
		for _, v := range m.Sets {
			if v.Name == set && (kind == set || kind == m.Kind) || set == "" && v.Name == kind {
				return v.New(), nil
			}
		}
	}
	var names []string
	for _, m := range known {
		if m.Kind == kind && set != "" {
			return nil, fmt.Errorf("%s %q has no set %q; it has %s", part, kind, set, quoted(setNames(m)))
		}
		names = append(append(names, m.Kind), setNames(m)...)
	}
	return nil, fmt.Errorf("%q is no %s; there are none, %s", kind, part, strings.Join(names, ", "))
}

func setNames(m *Mechanism) []string {
	var out []string
	for _, s := range m.Sets {
		out = append(out, s.Name)
	}
	return out
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
