package model

// Buffer is a model of packet memory; its state is one switch's. The two that are built in
// are called without this interface, because every frame asks them.
type Buffer interface {
	// Admit charges a frame to the buffer, or tells why there is no room.
	Admit(sw Switch, in, out PortID, queue int, size int32) DropReason
	Release(sw Switch, in, out PortID, queue int, size int32)
	Xoff(sw Switch, in PortID, queue int) bool // should the peer of an ingress stop sending a class?
	Xon(sw Switch, in PortID, queue int) bool  // may it go on?
	Used() int64                               // bytes in use
}

// BufferSettings make the Buffer of a switch; nil is one that is built in.
type BufferSettings interface {
	Settings
	Kind() MMUKind
	Buffer(sw Switch, bytes int64) (Buffer, error)
}

var referenceMechanism = Mechanism{Part: PartBuffer, Kind: "reference",
	About: "bytes; one shared pool with a dynamic threshold and headroom beyond it, as the published simulators have it",
	New:   func() Settings { return &builtInBuffer{MMUReference} }}

var cellsMechanism = Mechanism{Part: PartBuffer, Kind: "cells",
	About: "whole cells; guaranteed, service and headroom pools as switch chips have them; its limits are the switch's key `cells`",
	New:   func() Settings { return &builtInBuffer{MMUCells} }}

// builtInBuffer is a model that the engine knows.
type builtInBuffer struct{ kind MMUKind }

func (*builtInBuffer) Check() error                         { return nil }
func (b *builtInBuffer) Kind() MMUKind                      { return b.kind }
func (*builtInBuffer) Buffer(Switch, int64) (Buffer, error) { return nil, nil }

// setupOther gives a switch a buffer that is not built in.
func (s *Sim) setupOther(i int32) (err error) {
	sw := &s.switches[i]
	sw.buffer, err = sw.prof.Other.Buffer(Switch{s, i}, sw.prof.Buffer)
	return err
}
