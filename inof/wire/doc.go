// Package wire is what devices and reflectors say to each other (docs/protocol.md): messages and
// records as values, as bytes, cut into pieces and put together. It knows no session and keeps no
// state. Bytes give a value or a *ProtocolError, and nothing is allocated from a length that was
// not checked.
//
// A message is a Header, TLVs and, where a session says so, a tag: wire.go. Each message has its
// file (open.go, update.go), and so has each thing that records do together: batch and split.go,
// coalesce.go, downs.go.
package wire
