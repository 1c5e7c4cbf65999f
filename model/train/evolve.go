package train

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/openinof/inof/model"
)

// Plan is a training.
type Plan struct {
	Seed        uint64
	Generations int
	Pairs       int        // mirrored changes tried in a generation
	Sigma, Step int64      // size of a change, and of the move after it, in 1/4096
	Slot        model.Time // length of a pattern
	Workers     int
	Told        func(generation int, mean, best int64) // of each generation; scores in millionths
}

// NewPlan gives the training of the network that is shipped.
func NewPlan() Plan {
	return Plan{Seed: 1, Generations: 25, Pairs: 12, Sigma: 3 * model.NetOne / 10, Step: 4 * model.NetOne / 10, Slot: 4 * model.Millisecond, Workers: runtime.NumCPU()}
}

// Command gives the command that repeats the training.
func (p Plan) Command() string {
	return fmt.Sprintf("inofctl fabric train --seed %d --generations %d", p.Seed, p.Generations)
}

// weights are those of a network while it is trained.
type weights = [model.NetWeights]int32

// Train makes a network. The first error, or the end of ctx, ends it.
func (p Plan) Train(ctx context.Context) (*model.ThresholdNet, error) {
	rng := model.RNG(p.Seed)
	var at weights
	for i := range at {
		at[i] = int32(normal(&rng) * int64(model.NetOne) / 4 / normalOne)
	}
	net := &model.ThresholdNet{Made: p.Command()}
	for g := range p.Generations {
		eps := make([][model.NetWeights]int64, p.Pairs)
		for i := range eps {
			for k := range eps[i] {
				eps[i][k] = normal(&rng)
			}
		}
		f, err := p.evaluate(ctx, uint64(g), &at, eps)
		if err != nil {
			return nil, err
		}
		p.move(&at, eps, f)
		if g == 0 {
			net.Early = (&model.ThresholdNet{Weights: at}).Hash()
		}
		if p.Told != nil {
			mean, best := int64(0), f[0]
			for _, x := range f {
				mean += x
				best = max(best, x)
			}
			p.Told(g, mean/int64(len(f)), best)
		}
	}
	net.Weights = at
	return net, p.describe(net)
}

// leastSpread of scores, in millionths, is told from chance.
const leastSpread = 2000

// move goes towards the changes that did better.
func (p Plan) move(at *weights, eps [][model.NetWeights]int64, f []int64) {
	square := int64(0)
	for i := range eps {
		d := f[2*i] - f[2*i+1]
		square += d * d
	}
	sd := max(leastSpread, root(square/int64(len(eps))))
	for k := range at {
		sum := int64(0)
		for i := range eps {
			sum += (f[2*i] - f[2*i+1]) * eps[i][k]
		}
		at[k] += int32(p.Step * (sum / sd) / normalOne / int64(len(eps)))
	}
}

// evaluate gives the score of each change and of its mirror, in millionths. All see the same
// traffic; that of each generation is another.
func (p Plan) evaluate(ctx context.Context, generation uint64, at *weights, eps [][model.NetWeights]int64) ([]int64, error) {
	out := make([]int64, 2*len(eps))
	err := parallel(ctx, p.Workers, len(out), func(n int) error {
		net := &model.ThresholdNet{Weights: *at}
		for k, e := range eps[n/2] {
			net.Weights[k] += int32((1 - 2*int64(n%2)) * e * p.Sigma / normalOne)
		}
		f, err := p.fitness(net, generation)
		out[n] = f
		return err
	})
	return out, err
}

// parallel does n things, so many at a time as there are workers. The first error, or the end of
// ctx, ends it.
func parallel(ctx context.Context, workers, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, min(workers, n)) {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// episodes are the runs of the training.
func (p Plan) episodes(generation uint64) []Run {
	var out []Run
	for i, s := range []string{"AB", "CA", "BC"} {
		out = append(out, Run{s, p.Slot, 1000*p.Seed + 10*generation + uint64(i)})
	}
	return out
}

func (p Plan) fitness(net *model.ThresholdNet, generation uint64) (int64, error) {
	sum := int64(0)
	runs := p.episodes(generation)
	for _, r := range runs {
		o, err := r.Do(Inferring(net, nil))
		if err != nil {
			return 0, err
		}
		sum += o.Score
	}
	return sum / int64(len(runs)), nil
}

// Inferring is AI-ECN with a network; one without a description of its training takes all traffic
// for known.
func Inferring(net *model.ThresholdNet, watch func([model.NetInputs]int32)) Marks {
	m := learnable()
	set := m.Tuner.(*model.AIECN)
	set.Mode, set.Net, set.Watch = "inference", net, watch
	if net != nil && net.Most == ([model.NetInputs]int32{}) {
		open := *net
		for i := range open.Most {
			open.Most[i] = model.NetOne
		}
		set.Net = &open
	}
	m.Name = "ai-ecn inference"
	return m
}

// describe notes what the inputs were in the training's last episodes.
func (p Plan) describe(net *model.ThresholdNet) error {
	var least, most [model.NetInputs]int32
	for i := range least {
		least[i] = model.NetOne
	}
	watch := func(in [model.NetInputs]int32) {
		for i, x := range in {
			least[i], most[i] = min(least[i], x), max(most[i], x)
		}
	}
	for _, r := range p.episodes(uint64(p.Generations)) {
		if _, err := r.Do(Inferring(net, watch)); err != nil {
			return err
		}
	}
	net.Least, net.Most = least, most
	return nil
}

// normalOne is 1 in what normal gives.
const normalOne = 1 << 16

// normal draws about normally: the sum of twelve uniform numbers.
func normal(rng *model.RNG) int64 {
	sum := int64(-6 * normalOne)
	for range 12 {
		sum += int64(rng.Uint64() >> 48)
	}
	return sum
}

// root gives the square root, rounded down.
func root(x int64) int64 {
	r := int64(math.Sqrt(float64(x)))
	for r*r > x {
		r--
	}
	for (r+1)*(r+1) <= x {
		r++
	}
	return r
}
