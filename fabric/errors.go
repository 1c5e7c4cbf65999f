package fabric

import "errors"

// Errors of Dataplane.Send and SetAdmin that a caller may want to tell apart; all
// are wrapped, so test them with errors.Is.
var (
	// ErrPortDown: the port is shut or has no carrier; send again after it is up.
	ErrPortDown = errors.New("port is down")
	// ErrPortBusy: the driver did not take the frame, since its transmit ring is full or the
	// carrier is gone, which is not told yet; it was dropped, send again later.
	ErrPortBusy = errors.New("the driver did not take the frame: carrier just lost, or transmit ring full")
	// ErrFrameSize: the frame is shorter than an Ethernet header or longer than the port's MTU
	// allows.
	ErrFrameSize = errors.New("frame has a wrong size")
)
