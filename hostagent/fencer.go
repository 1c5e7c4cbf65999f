package hostagent

import (
	"context"
	"net/netip"

	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Fencer obtains level "array" for the paths of one pair over a path that lives.
type Fencer interface {
	// Fence returns once no write that was sent by the host to the array over these controllers
	// can reach the media, or an error with the reason why that cannot be had. It is idempotent.
	// It calls working, from any goroutine, when the array is at it: it has taken the call, or begun.
	Fence(ctx context.Context, p FencePair, working func()) (snsd.Fence, error)
	// Confirm is called after the host has left these controllers, or will not leave them: the
	// array may lift its block.
	Confirm(ctx context.Context, p FencePair) error
}

// FencePair is what a Fencer is asked for.
type FencePair struct {
	Host, Array netip.Addr              // the ends of the path that is to be fenced
	NQN         string                  // of the subsystem
	Controllers []hostkernel.Controller // on that path
	Living      []hostkernel.Controller // of the same subsystem, live, on other paths
}

// FenceChecker is a Fencer that can say beforehand whether it could fence a pair.
type FenceChecker interface {
	// Check returns nil, or the reason why it could not. It changes nothing.
	Check(ctx context.Context, p FencePair) error
}
