// Package iolog is what the program that does I/O in the virtual machine tells the bed outside.
package iolog

// Log is what became of all I/O. Times are in ns since 1970 by the clock of the machine.
type Log struct {
	Count  int     `json:"count"`
	Errors int     `json:"errors"`
	IOs    []IO    `json:"ios"` // in the order of their ends
	States []State `json:"states"`
}

// IO is one read or write.
type IO struct {
	Write bool   `json:"write,omitempty"`
	Begun int64  `json:"begun"`
	Ended int64  `json:"ended"`
	Error string `json:"error,omitempty"`
}

// Gone is the state of a controller that is no longer there.
const Gone = "gone"

// State is a change of a controller's state.
type State struct {
	At         int64  `json:"at"`
	Controller string `json:"controller"`
	Address    string `json:"address,omitempty"`
	State      string `json:"state"`
}

// Now is the present state.
type Now struct {
	Asked  string `json:"asked"` // the question, so that a late answer is not taken for another's
	At     int64  `json:"at"`
	Oldest int64  `json:"oldest"` // ns since the oldest I/O in flight began
	Count  int    `json:"count"`
	Errors int    `json:"errors"`
}
