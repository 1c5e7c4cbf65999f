// Package change is what operators write of zones and how they change it: a Plan of
// zones, aliases and zone sets, of which one may be active; the difference of two plans
// (Delta); and a Book of versions, of which the last may wait for a confirmation and
// goes back by itself without one.
//
// A reflector that stands alone has a Book beside its zone file; the members of a cluster
// have the same one in their log. What is in force of a plan (InForce) is all that the
// rest of the house knows. Pure code: no socket, goroutine or clock.
package change
