// Package reflector holds the records of all devices and passes each client what concerns it.
//
// What clients and operators say comes in by take.go and zones.go. Of each change the difference
// between the tables before and after it is worked out (change.go, down.go), for classes
// of devices that see it alike (interest.go, classes.go). It goes into one feed (feed.go), from
// which each client is owed keys (backlog.go) and pulls their present state (pull.go).
//
// It is pure: messages and the time go in, messages come out.
package reflector
