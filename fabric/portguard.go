package fabric

// GuardedPort is an interface that a PortGuard guards.
type GuardedPort struct {
	Name  string
	Index int
}

// GuardState is how a port is guarded.
type GuardState struct {
	Port string
	Way  string // "tcx", "clsact"
	Err  error  // nil: it is guarded both ways
}

// ForbiddenFrames counts LLDP and SNSD frames that were dropped at a port, since it is guarded.
type ForbiddenFrames struct {
	In, Out uint64 // from its host to others, and from others to its host
	Src     MAC    // of the last one
	Type    uint16 // of the last one
}

// PortGuard keeps LLDP and SNSD frames on their link: no switch forwards them from or to a port that
// it guards. Its methods may be called by several goroutines.
type PortGuard interface {
	// SetPorts guards these ports and no others.
	SetPorts([]GuardedPort) []GuardState
	Forbidden() (map[string]ForbiddenFrames, error)
	Close() error // the guard itself stays, if it can
}
