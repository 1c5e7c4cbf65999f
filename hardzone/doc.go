// Package hardzone decides which hosts may exchange frames through this switch: the policy of
// hard zoning. It compiles it from the table of hosts (package zone) into rows that a dataplane
// can look up, the hosts with the ports that they may send from and the pairs of hosts that may
// talk, and follows each change with the fewest steps.
//
// Two rules shape the steps. A pair that is permitted before and after a change keeps its row
// throughout. A pair that is permitted no more keeps its row until the hosts behind this
// switch have acked the notice about it, or CloseAfter is over: closed at once, I/O would
// freeze that an ordered disconnect ends cleanly.
//
// Pure code: no socket, goroutine or clock. fabric/linux/zonefilter brings the rows into a kernel.
package hardzone
