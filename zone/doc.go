// Package zone says who may see whom. It holds the configured zones and their
// members, an index that finds the zones of a host without scanning, and the
// Directory: the one table of a device about all hosts it knows, where each is
// attached, whether it can be reached, and with whom it shares a zone.
//
// lldp, errdown and inof feed the Directory through internal/daemon; hostnotify
// reads from it what local hosts must be told. Pure code: no socket, goroutine or
// clock.
package zone
