package workload

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/openinof/inof/model"
)

// Point of a cumulative distribution: Percent of flows have at most Bytes.
type Point struct {
	Bytes, Percent float64
}

// Sizes is a distribution of flow sizes, linear between its points.
type Sizes []Point

// WebSearch is the web search distribution as the reference workload W3 defines it.
var WebSearch = Sizes{{0, 0}, {10e3, 15}, {20e3, 20}, {30e3, 30}, {50e3, 40}, {80e3, 53}, {200e3, 60}, {1e6, 70}, {2e6, 80}, {5e6, 90}, {10e6, 97}, {30e6, 100}}

// OneSize is flows that are all alike.
func OneSize(bytes int64) Sizes { return Sizes{{float64(bytes), 0}, {float64(bytes), 100}} }

// Mean gives the average size in bytes.
func (d Sizes) Mean() float64 {
	m := 0.0
	for i := 1; i < len(d); i++ {
		m += (d[i].Bytes + d[i-1].Bytes) / 2 * (d[i].Percent - d[i-1].Percent) / 100 // divided last: nothing to fuse
	}
	return m
}

// At gives the size at a quantile u in [0, 1).
func (d Sizes) At(u float64) float64 {
	u = float64(u * 100)
	for i := 1; i < len(d); i++ {
		if u <= d[i].Percent {
			a, b := d[i-1], d[i]
			return a.Bytes + float64((b.Bytes-a.Bytes)/(b.Percent-a.Percent)*(u-a.Percent)) // see ln
		}
	}
	return d[len(d)-1].Bytes
}

// ReadSizes reads lines "bytes percent"; '#' starts a comment. Percent rises from
// the first line to 100 at the last.
func ReadSizes(r io.Reader) (Sizes, error) {
	var d Sizes
	sc := bufio.NewScanner(r)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d: %d fields, want bytes and percent", line, len(f))
		}
		b, err1 := strconv.ParseFloat(f[0], 64)
		p, err2 := strconv.ParseFloat(f[1], 64)
		if err1 != nil || err2 != nil || !(b >= 0) || !(p >= 0) || p > 100 || b > 1e12 {
			return nil, fmt.Errorf("line %d: %q is not a size in bytes and a percentage", line, sc.Text())
		}
		if n := len(d); n > 0 && (b < d[n-1].Bytes || p <= d[n-1].Percent) {
			return nil, fmt.Errorf("line %d: %g bytes at %g %% do not rise", line, b, p)
		}
		d = append(d, Point{b, p})
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(d) < 2 || d[0].Percent != 0 || d[len(d)-1].Percent != 100 {
		return nil, fmt.Errorf("%d points: a distribution rises from 0 to 100 %%", len(d))
	}
	return d, nil
}

// Sender is a host that offers load, with the speed of its link.
type Sender struct {
	ID   model.EndpointID
	Rate model.Rate
}

// Arrivals is traffic of independent senders: each starts flows with exponential gaps, so
// that on average it offers Load times the speed of its own link from Start until Until, to
// uniformly chosen others of To. The draws of a sender are those of the reference workload
// W3: a splitmix64 generator seeded Seed + its place in From, in the order gap, destination, size.
type Arrivals struct {
	Sizes        Sizes
	From         []Sender
	To           []model.EndpointID
	Load         float64 // above 0; 1 = line rate
	Start, Until model.Time
	Seed         uint64
}

// Flows gives about how many flows the arrivals make.
func (a Arrivals) Flows() float64 {
	n := 0.0
	for _, from := range a.From {
		n += (a.Until - a.Start).Seconds() / a.gap(from.Rate)
	}
	return n
}

// gap gives the mean seconds between the flows of a sender.
func (a Arrivals) gap(rate model.Rate) float64 { return a.Sizes.Mean() * 8 / (a.Load * float64(rate)) }

// Poisson makes the flows of the arrivals, sender by sender. A sender with nobody to send
// to makes none.
func Poisson(a Arrivals) []model.FlowSpec {
	out := make([]model.FlowSpec, 0, max(0, int(1.01*a.Flows()))+64)
	place := make(map[model.EndpointID]int, len(a.To))
	for i := len(a.To) - 1; i >= 0; i-- {
		place[a.To[i]] = i
	}
	for i, from := range a.From {
		others := uint64(len(a.To))
		self, receives := place[from.ID]
		if receives {
			others--
		}
		if others == 0 {
			continue
		}
		rng := model.RNG(a.Seed + uint64(i))
		t := a.Start.Seconds()
		for {
			t += float64(-ln(1-rng.Float64()) * a.gap(from.Rate))
			if t >= a.Until.Seconds() {
				break
			}
			to := int(rng.Uint64() % others)
			if receives && to >= self {
				to++
			}
			size := int64(a.Sizes.At(rng.Float64()))
			out = append(out, model.FlowSpec{Src: from.ID, Dst: a.To[to], Bytes: max(1, size), Start: model.Time(t * float64(model.Second)), TOS: DataTOS})
		}
	}
	return out
}

// DataTOS is the class byte of data flows: DSCP 24, queue 3.
const DataTOS = 24 << 2
