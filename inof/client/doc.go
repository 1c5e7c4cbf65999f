// Package client is what a device says to its reflectors and keeps of what they say: own hosts
// (own.go), a table for each reflector (replica.go, zonetable.go), and what follows
// from the tables by pure functions: which hosts there are (hostagree.go), which zones are in
// force (zoneagree.go), who has an address that several claim (disputes.go).
//
// It is pure: messages and the time go in, messages and what is to be Applied come out.
package client
