package workload

import (
	"bufio"
	"fmt"
	"io"
	"math"
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

// Mean gives the average size in bytes.
func (d Sizes) Mean() float64 {
	m := 0.0
	for i := 1; i < len(d); i++ {
		m += (d[i].Bytes + d[i-1].Bytes) / 2 * (d[i].Percent - d[i-1].Percent) / 100
	}
	return m
}

// At gives the size at a quantile u in [0, 1).
func (d Sizes) At(u float64) float64 {
	u *= 100
	for i := 1; i < len(d); i++ {
		if u <= d[i].Percent {
			a, b := d[i-1], d[i]
			return a.Bytes + (b.Bytes-a.Bytes)/(b.Percent-a.Percent)*(u-a.Percent)
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

// Poisson gives flows that each host starts with exponential gaps so that it offers
// load x rate on average, to uniformly chosen others.
func Poisson(sizes Sizes, hosts int, rate model.Rate, load float64, until model.Time, seed uint64) []model.FlowSpec {
	mean := sizes.Mean() * 8 / (load * float64(rate)) // seconds between arrivals
	var out []model.FlowSpec
	for h := range hosts {
		rng := model.RNG(seed + uint64(h))
		t := 0.0
		for {
			t += -math.Log(1-rng.Float64()) * mean
			if t >= until.Seconds() {
				break
			}
			dst := int(rng.Float64() * float64(hosts-1))
			if dst >= h {
				dst++
			}
			size := int64(sizes.At(rng.Float64()))
			out = append(out, model.FlowSpec{Src: model.EndpointID(h), Dst: model.EndpointID(dst), Bytes: max(1, size),
				Start: model.Time(t * float64(model.Second)), TOS: DataTOS})
		}
	}
	return out
}

// DataTOS is the class byte of data flows: DSCP 24, queue 3.
const DataTOS = 24 << 2
