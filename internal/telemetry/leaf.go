package telemetry

import (
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// Class is how a leaf changes.
type Class string

// The values of Leaf.Class.
const (
	Event   Class = "event"   // seldom, and each change matters
	Counter Class = "counter" // grows
	Gauge   Class = "gauge"   // goes up and down
	Config  Class = "config"  // as it was configured
)

// Leaf is one thing that can be known.
type Leaf struct {
	// Path from the root, with the keys of lists: /inof/peers/peer[role device address]/since.
	Path string
	Type string // YANG
	Unit string // empty: none
	Doc  string
	// Source is where it comes from.
	Source string
	Class  Class
	// Least is the shortest period after which a new value can be had; 0: at once.
	Least  time.Duration
	Metric Metric // zero: Prometheus has none
}

// Metric is what Prometheus has of a leaf.
type Metric struct {
	Name   string // without inof_
	Labels string // names of the keys, with blanks between; those beyond are left out
	Fixed  string // a label and its value, as direction=in
	// As is the label that has the value of a leaf that is a word; the metric is 1 then.
	As string
	// Bulk is what goes first where there are too many series: priority before peer.
	Bulk string
}

// What goes first where there are too many series.
const (
	BulkPriority = "priority"
	BulkPeer     = "peer"
)

// Histogram is the value of a leaf that is a distribution of times.
type Histogram struct {
	Count   uint64
	Sum     float64 // seconds
	Bounds  []float64
	Buckets []uint64 // cumulative, one for each bound and one for all
}

// leaf is a Leaf with its value in a row; nil: it is absent there. Its path is below that of
// its group.
type leaf[T any] struct {
	Leaf
	value func(*T) any
}

// group are the leaves of a container, or of the entries of a list.
type group[T any] struct {
	path   string
	source string // of those of its leaves that say none
	least  time.Duration
	rows   func(s *Snapshot, give func(at time.Time, row *T, keys ...string))
	leaves []leaf[T]
}

// part is a group without its type.
type part struct {
	leaves []*Leaf
	read   func(s *Snapshot, give func(Value))
}

func (g group[T]) part() part {
	p := part{}
	for _, l := range g.leaves {
		l.Path = g.path + "/" + l.Path
		if l.Source == "" {
			l.Source = g.source
		}
		if l.Least == 0 && l.Class != Event && l.Class != Config {
			l.Least = g.least
		}
		p.leaves = append(p.leaves, &l.Leaf)
	}
	p.read = func(s *Snapshot, give func(Value)) {
		g.rows(s, func(at time.Time, row *T, keys ...string) {
			for i := range g.leaves {
				if v := g.leaves[i].value(row); v != nil {
					give(Value{Leaf: p.leaves[i], Keys: slices.Clone(keys), V: v, At: at})
				}
			}
		})
	}
	return p
}

// table is all there is, in the order of docs/telemetry.md.
var table = []part{
	device.part(), counts.part(), hostCounts.part(), machine.part(),
	openInterfaces.part(), openCounters.part(), drivers.part(), interfaces.part(), priorities.part(), errorDown.part(),
	peers.part(), paths.part(), clocks.part(), cluster.part(),
	noticeCounts.part(), noticeResults.part(), stages.part(), events.part(), counters.part(),
}

// Leaves are all leaves there are.
func Leaves() (out []*Leaf) {
	for _, p := range table {
		out = append(out, p.leaves...)
	}
	return out
}

// some is a value that is absent where it is the zero value: a text that is not known.
func some[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// moment is a time that may not be known.
func moment(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return *t
}

// seconds is a duration of the API.
func seconds(d api.Duration) any { return time.Duration(d) }
