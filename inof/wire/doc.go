// Package wire is what devices and reflectors say to each other (docs/protocol.md): messages and
// records as values, as bytes, cut into pieces and put together. It knows no session and keeps no
// state. Bytes give a value or a *ProtocolError, and nothing is allocated from a length that was
// not checked.
//
// A message is a Header, TLVs and, where a session says so, a tag: wire.go. Each message has its
// file (open.go, update.go), and so has each record of an Update (hostrecord.go). What is done with
// records of all kinds is in kinds.go, and by it in records.go, pieces.go and coalesce.go.
package wire
