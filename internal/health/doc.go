// Package health says what an operator should look at: one table of rules over what the
// daemon knows. It decides only; internal/daemon gathers the Facts and shows the outcome
// (`inofctl show status`, `inofctl show status --check`).
//
// # How to add a warning
//
// One declaration in the list that fits (sessions.go, device.go, fabric.go): its name, when
// it is raised, what to do about it, and one of two ways to find it.
//
//   - A condition that stands: Find looks at the Facts and returns one text for each thing
//     that is wrong. What it needs and Facts does not have yet is a new field there, which
//     internal/daemon/facts.go fills.
//
//   - Something that happened: leave Find nil, set Memory, and put the rule's name into the
//     Warning of the event that tells of it, with its Device, Port or Addr:
//
//     c.out.Event(api.Event{Time: now, Kind: "conflict", Addr: a, Text: ..., Warning: health.AddressConflict})
//
//     The warning then stands for Memory after the last such event, once for each device,
//     port and address, with the text of the last event and how often it came. The event log
//     writes such an event with the priority of a warning.
//
// Then `go test ./internal/health -update` writes docs/warnings.md anew.
package health
