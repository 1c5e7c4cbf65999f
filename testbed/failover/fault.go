package failover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed"
)

// Fault is one way in which the path of the first plane fails. Strike gives the moment right
// before it struck.
type Fault struct {
	Name   string
	Strike func(ctx context.Context, b *Bed, m *Method) (time.Time, error)
	Heal   func(ctx context.Context, b *Bed, m *Method) (time.Time, error)
}

// Faults are all of them.
var Faults = []Fault{
	{"array cable cut", cut("tor3", false), cut("tor3", true)},
	{"host cable cut", cut("tor1", false), cut("tor1", true)},
	{"path silent, both ways", forward(false), forward(true)},
	{"path silent, array to host", blackhole(1, "add"), blackhole(1, "del")},
	{"path silent, host to array", blackhole(2, "add"), blackhole(2, "del")},
	{"array's TOR killed", killTOR, startTOR},
	{"array shut down in order", shutDown, serve},
	{"zone withdrawn", member(api.MembersRemove), member(api.MembersAdd)},
}

func cut(node string, up bool) func(context.Context, *Bed, *Method) (time.Time, error) {
	return func(_ context.Context, b *Bed, _ *Method) (time.Time, error) { return b.lab.Fault(node, "eth1", up) }
}

func forward(on bool) func(context.Context, *Bed, *Method) (time.Time, error) {
	return func(_ context.Context, b *Bed, _ *Method) (time.Time, error) { return b.lab.Forward(mids[0], on) }
}

// blackhole has the router drop what goes to one side, 1 the host's, 2 the array's, without a word.
func blackhole(side int, verb string) func(context.Context, *Bed, *Method) (time.Time, error) {
	return func(ctx context.Context, b *Bed, _ *Method) (time.Time, error) {
		at := time.Now()
		for _, dst := range []string{fmt.Sprintf("10.1.%d.0/25", side), deviceID(11+2*(side-1)) + "/32"} {
			// More specific, or of a better metric, than the route that is there.
			if _, err := b.lab.Exec(ctx, mids[0], "ip", "route", verb, "blackhole", dst, "table", "100"); err != nil {
				return at, err
			}
		}
		_, err := b.lab.Exec(ctx, mids[0], "ip", "rule", verb, "lookup", "100", "priority", "10")
		return at, err
	}
}

// killTOR takes the power from the array's access switch.
func killTOR(ctx context.Context, b *Bed, _ *Method) (time.Time, error) {
	node := arrayTORs[0]
	for _, p := range []string{"inofd", testbed.BFDProcess} {
		if _, err := b.lab.Signal(node, p, unix.SIGKILL); err != nil {
			return time.Time{}, err
		}
	}
	at := time.Now()
	for _, port := range []string{"eth1", "eth49", "eth50"} {
		if _, err := b.lab.Fault(node, port, false); err != nil {
			return at, err
		}
	}
	return at, nil
}

func startTOR(ctx context.Context, b *Bed, _ *Method) (time.Time, error) {
	node := arrayTORs[0]
	at := time.Now()
	for _, port := range []string{"eth1", "eth49", "eth50"} {
		if _, err := b.lab.Fault(node, port, true); err != nil {
			return at, err
		}
	}
	// An interface that was down has lost its routes; at a pulled cable that is the far one.
	for _, r := range []struct{ node, route string }{
		{node, "10.0.0.1/32 via 10.9.3.0 src 10.0.0.13"}, {node, "10.0.0.11/32 via 10.1.9.0 src 10.0.0.13"}, {node, "10.1.1.0/24 via 10.1.9.0"},
		{mids[0], "10.1.2.0/24 via 10.1.9.1"}, {mids[0], "10.0.0.13/32 via 10.1.9.1"}, {reflector, "10.0.0.13/32 via 10.9.3.1 src 10.0.0.1"},
	} {
		if _, err := b.lab.Exec(ctx, r.node, append([]string{"ip", "route", "replace"}, strings.Fields(r.route)...)...); err != nil {
			return at, err
		}
	}
	return at, b.lab.Start(ctx, node, "inofd")
}

// shutDown ends the array's service on the plane. With our agent there it says good-bye, and the
// array goes when the agent has ended, as their services are ordered.
func shutDown(ctx context.Context, b *Bed, m *Method) (time.Time, error) {
	at := time.Now()
	if m.Ours {
		node, _, _ := b.over.at(0)
		if err := b.stopOn(ctx, node, b.target[0]); err != nil {
			return at, err
		}
	}
	_, err := b.doAtArray(ctx, shutPort(0))
	return at, err
}

func serve(ctx context.Context, b *Bed, m *Method) (time.Time, error) {
	at := time.Now()
	if _, err := b.doAtArray(ctx, openPort(b.over, 0)); err != nil {
		return at, err
	}
	if m.Ours {
		return at, b.startTarget(ctx, 0)
	}
	return at, nil
}

func member(do api.ZoneDo) func(context.Context, *Bed, *Method) (time.Time, error) {
	return func(ctx context.Context, b *Bed, _ *Method) (time.Time, error) {
		at := time.Now()
		_, err := b.zones.ChangeZone(ctx, api.ZoneOrder{Do: do, Name: zoneName(0), Members: []string{arrayAddr(0).String()}})
		return at, err
	}
}
