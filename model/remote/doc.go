// Package remote joins a daemon to a simulated fabric that another process runs: a
// fabric.Dataplane over a unix socket, and the requests of operators to that process.
//
// A connection carries lines of JSON. The first line from the client is a Request. To
// an attachment the other side answers with a Reply and then both send what they have:
// Up to the fabric, Down from it. Everything else is one Reply.
package remote
