// Package load puts thousands of sessions of the real protocol on a reflector and
// measures it: how long until the last client has a fault, how many changes a second
// it passes on, what a session costs, how long a full sync and the return after a
// restart take. Beside each figure stands its bound of the same run: a bare loop that
// writes the same bytes to as many sockets, read by the same readers.
//
// The reflector is a process of its own that the benchmark starts (Main), so that
// its memory and processor time are its own, or one that is there already (Target).
// On the latter nothing is touched but devices and hosts of the ranges given, and
// zones whose names begin with ZonePrefix; all are removed at the end.
package load
