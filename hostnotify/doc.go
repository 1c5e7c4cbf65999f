// Package hostnotify decides what each local storage host must be told about the
// other hosts, and gets it told.
//
// It is the last room before the wire: zone.Directory says what is true, the
// Notifier compares that with what every local subscriber was last told, and the
// differences become NTS notices (package snsd) in frames for fabric to send.
// Because state is compared with state, a lost, repeated or reordered message
// anywhere before this room cannot leave a host with a wrong picture.
//
// # What a host is told
//
// For every pair (subscriber, subject) the Directory gives one verdict:
//
//	subject known, shares a zone, reachable      active
//	subject known, shares a zone, unreachable    inactive, with the fault's reason
//	subject known, shares no zone (any more)     inactive(zone-changed), if it was told active
//	subject not known (any more)                 inactive(reason of its withdrawal), if it was told active
//
// A pair that was never told active is never told inactive. A host hears neither of
// its own addresses, nor of addresses of the other family (a notice carries both
// addresses in one family), nor of hosts of its own role (see Config.AllRoles). The
// same thing is not said twice in a row, except in answer to a zone query and when the
// host's link was down.
//
// An active peer that registers another role, protocol, port or NQN is another service:
// the host is told inactive(IP changed) of the one it knows, so that it lets go of it,
// and once it has acked that, active of the new one. What was unknown before and is said
// now is the same service, and told again.
//
// While a pair is inactive a new reason is told only when it escalates from one of
// the reasons 1, 2, 3, 7 to 4 or 5: after the former the host agent only sends keep-alive
// commands, so that the kernel finds the dead path and goes on trying to reconnect;
// after the latter it removes the controller, which it must when the subject left
// its zone or is another machine now. Ageing out (6) is no escalation: a subject
// silent behind a dead link ages out two minutes later without anything new having
// happened, and the kernel's own reconnecting should survive that. No reason leads
// back from "removed" to "keep trying"; only active does.
//
// # How it is told
//
// Many notices share a frame. Frames are paced per port and notices per host, below
// the guards of the host agent, which goes deaf for about 10 s when flooded
// (see Config). Inactive goes before active, new before retries, and hosts of one
// port take turns; so do, at one that acks nothing, the devices of the subjects. Each
// notice has its own sequence number, is retried with the same number until its ack
// comes, and is given up only when the truth changed meanwhile or the host left. When it
// is retried follows from the host's acks (see flight.go). A host whose link is back is
// told at once; its ack proves that it is there.
//
// The package is pure: no socket, goroutine, clock or global; a Notifier belongs
// to one goroutine.
package hostnotify
