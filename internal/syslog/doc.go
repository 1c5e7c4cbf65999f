// Package syslog sends what happens on a device to syslog servers: messages of RFC 5424 with
// structured data, one in a datagram (RFC 5426), or each behind its length on a TCP connection
// (RFC 6587 section 3.4.1) or a TLS one (RFC 5425).
//
// A Sender reads an event log at its own pace, so that nobody waits for a server. While one
// cannot be reached the log itself is the queue; what went out of it meanwhile is counted and
// said once. TCP tells no sender what was taken: with the connection goes what was under way.
// What is sent twice after that has the same `id`.
package syslog
