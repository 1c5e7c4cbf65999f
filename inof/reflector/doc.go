// Package reflector holds the records of all devices and passes each client what concerns it.
//
// What clients and operators say comes in by sessions.go, take.go and zones.go. Of each change the
// difference between the tables (hosts.go, interest.go) before and after it is worked out
// (commit.go, watched.go), for classes of devices that see it alike (classes.go). It goes into one
// feed (feed.go), from which each client is owed keys (backlog.go) and pulls (pull.go) their
// present state as messages (messages.go).
//
// It is pure: messages and the time go in, messages come out.
package reflector
