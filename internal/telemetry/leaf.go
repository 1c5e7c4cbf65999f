package telemetry

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
	// Path from the root, with the keys of lists: /inof/paths/path[device]/state/flaps.
	Path string
	Type string // one of the Type constants
	Many bool   // a leaf-list
	// Values are those of an enumeration.
	Values []string
	// Set: it may be set (rw in YANG); all others are state.
	Set  bool
	Unit string // empty: none
	Doc  string
	// Source is where it comes from.
	Source string
	Class  Class
	// Least is the shortest period after which a new value can be had; 0: at once.
	Least  time.Duration
	Reader Reader // zero: what its group says
	Needs  Need
	// Each: it is of the newest event, and whoever follows it is told of each, all of its leaves
	// together (atomic).
	Each   bool
	Metric Metric // zero: Prometheus has none
}

// The types of leaves, as YANG has them; those that are no types of YANG are typedefs of
// dist/yang/openinof-inof.yang.
const (
	TypeString    = "string"
	TypeBool      = "boolean"
	TypeUint8     = "uint8"
	TypeUint16    = "uint16"
	TypeUint32    = "uint32"
	TypeUint64    = "uint64"
	TypeInt64     = "int64"
	TypeDecimal   = "decimal64" // three digits behind the point
	TypeEnum      = "enumeration"
	TypeCounter   = "counter64"
	TypeAddress   = "ip-address"
	TypeMAC       = "mac-address"
	TypeTime      = "timestamp" // nanoseconds since 1970, as OpenConfig's timeticks64
	TypeHistogram = "histogram" // for Prometheus: no leaf of YANG
)

// Digits are those behind the point of a TypeDecimal.
const Digits = 3

// Model reports whether the leaf is one of the YANG modules.
func (l *Leaf) Model() bool { return l.Type != TypeHistogram }

// Need is what of a Snapshot a leaf is read from, where that is not read for everybody.
type Need uint8

// The parts of a Snapshot that are large.
const (
	NeedHosts Need = 1 << iota
	NeedZones
	NeedNeighbours
)

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
	reader Reader // instead of least
	needs  Need
	each   bool
	// keys are the leaves of the keys of the list that the path ends in, one group of a list
	// has them.
	keys   []Leaf
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
	add := func(l Leaf) {
		l.Path = g.path + "/" + l.Path
		if l.Source == "" {
			l.Source = g.source
		}
		if l.Reader == 0 && l.Class != Config {
			l.Reader = g.reader
		}
		if l.Least == 0 && l.Class != Event && l.Class != Config {
			l.Least = max(g.least, leastOf[l.Reader])
		}
		l.Needs, l.Each = g.needs, g.each
		p.leaves = append(p.leaves, &l)
	}
	for _, l := range g.leaves {
		add(l.Leaf)
	}
	for _, l := range g.keys {
		l.Class, l.Doc = Config, "key"
		add(l)
	}
	p.read = func(s *Snapshot, give func(Value)) {
		g.rows(s, func(at time.Time, row *T, keys ...string) {
			keys = slices.Clone(keys) // once for all leaves of the row
			for i := range g.keys {
				l := p.leaves[len(g.leaves)+i]
				give(Value{Leaf: l, Keys: keys, V: keyValue(l, keys[len(keys)-len(g.keys)+i]), At: at})
			}
			for i := range g.leaves {
				if v := g.leaves[i].value(row); v != nil {
					give(Value{Leaf: p.leaves[i], Keys: keys, V: v, At: at})
				}
			}
		})
	}
	return p
}

// keyValue is a key as its leaf has it.
func keyValue(l *Leaf, text string) any {
	if l.Type == TypeUint8 {
		n, _ := strconv.ParseUint(text, 10, 8) // the row was made from a number
		return n
	}
	return text
}

// keysOf are the leaves of keys that are texts, or of a type that a name has behind a colon.
func keysOf(names ...string) (out []Leaf) {
	for _, name := range names {
		name, typ, _ := strings.Cut(name, ":")
		out = append(out, Leaf{Path: name, Type: cmp.Or(typ, TypeString)})
	}
	return out
}

// table is all there is, in the order of docs/telemetry.md.
var table = []part{
	config.part(), device.part(), zoningState.part(), counts.part(), machine.part(),
	openSystem.part(), openMachine.part(), openAlarms.part(), messagePart,
	openInterfaces.part(), openEthernet.part(), openCounters.part(), openDrivers.part(), openQueues.part(), openLLDP.part(), openNeighbours.part(), openBFD.part(),
	interfaces.part(), drivers.part(), priorities.part(), marking.part(), errorDown.part(),
	zones.part(), zoneConfig.part(), aliases.part(), aliasState.part(), sets.part(), setState.part(), hosts.part(),
	peers.part(), paths.part(), clocks.part(), cluster.part(),
	notices.part(), stages.part(), latestPart, events.part(), counters.part(),
}

// Of an event, see OfEvent.
var latestPart, messagePart = latest.part(), openMessage.part()

// Leaves are all leaves there are.
func Leaves() (out []*Leaf) {
	for _, p := range table {
		out = append(out, p.leaves...)
	}
	return out
}

// NeedsOf are the parts that what begins with a path is read from. They are large, so the path has
// to go two elements deep to ask for them.
func NeedsOf(path string) (n Need) {
	for _, l := range Leaves() {
		f := strings.SplitN(l.Path, "/", 4)
		if l.Needs != 0 && strings.HasPrefix(path, "/"+f[1]+"/"+f[2]) {
			n |= l.Needs
		}
	}
	return n
}

// some is a value that is absent where it is the zero value: a text that is not known.
func some[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// word is one of the values of an enumeration; absent: it is a number that has no name.
func word(values []string, text string) any {
	if !slices.Contains(values, text) {
		return nil
	}
	return text
}

// list is a leaf-list, absent where it is empty.
func list(texts []string) any {
	if len(texts) == 0 {
		return nil
	}
	return texts
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
