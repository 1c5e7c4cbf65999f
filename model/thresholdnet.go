package model

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/bits"
	"strings"
)

// Layers of a ThresholdNet.
const (
	NetInputs = 7
	netHidden = 12
	netLevels = 10
	// NetWeights is how many numbers a ThresholdNet has.
	NetWeights = netHidden*(NetInputs+1) + netHidden + 1
	// NetOne is 1 in weights and inputs: they are whole multiples of 1/4096.
	NetOne = 4096
)

// InputNames name the inputs of a ThresholdNet, each 0..NetOne, in their order.
var InputNames = [NetInputs]string{"use of the port", "mean queue", "share of marked frames", "present level", "flows", "share of elephants", "XOFF"}

// ThresholdNet is the network that AI-ECN infers with: 7 inputs, 12 hidden units and an output,
// each x/(1+|x|), which is read as one of 10 levels. It is integer arithmetic throughout, so that
// every machine decides alike.
type ThresholdNet struct {
	Made    string           // the command that makes it again
	Early   uint64           // hash of the weights after the first generation of its training
	Least   [NetInputs]int32 // of each input in its training
	Most    [NetInputs]int32
	Weights [NetWeights]int32 // of each unit its inputs', then its bias
}

// level gives the wanted level, 0..9.
func (t *ThresholdNet) level(in *[NetInputs]int32) int {
	w := t.Weights[:]
	out := int64(w[NetWeights-1]) * NetOne
	for i := range netHidden {
		sum := int64(w[NetInputs]) * NetOne
		for k, x := range in {
			sum += int64(w[k]) * int64(x)
		}
		out += int64(t.Weights[netHidden*(NetInputs+1)+i]) * squash(sum/NetOne)
		w = w[NetInputs+1:]
	}
	return int((squash(out/NetOne) + NetOne) * netLevels / (2*NetOne + 1))
}

// squash gives x/(1+|x|).
func squash(x int64) int64 { return x * NetOne / (NetOne + max(x, -x)) }

// knows reports whether inputs lie where those of the training did.
func (t *ThresholdNet) knows(in *[NetInputs]int32) bool {
	for i, x := range in {
		if x < t.Least[i]-NetOne/100 || x > t.Most[i]+NetOne/100 {
			return false
		}
	}
	return true
}

// Hash tells sets of weights apart.
func (t *ThresholdNet) Hash() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, t.Weights)
	return h.Sum64()
}

// netTitle begins a file of weights.
const netTitle = "thresholds of AI-ECN, 7-12-1, in 1/4096"

// Text gives the network as a file.
func (t *ThresholdNet) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nmade-by %s\nfirst-generation %016x\nweights-hash %016x\n", netTitle, t.Made, t.Early, t.Hash())
	for i := range t.Least {
		fmt.Fprintf(&b, "input %d %d %s\n", t.Least[i], t.Most[i], InputNames[i])
	}
	for i, w := range t.Weights {
		sep := " "
		if i%(NetInputs+1) == NetInputs || i == NetWeights-1 {
			sep = "\n"
		}
		fmt.Fprintf(&b, "%d%s", w, sep)
	}
	return b.String()
}

// ParseThresholdNet reads a file of weights; its hash must be that of the weights.
func ParseThresholdNet(text string) (*ThresholdNet, error) {
	t := &ThresholdNet{}
	head, rest, _ := strings.Cut(text, "\n")
	if head != netTitle {
		return nil, fmt.Errorf("the first line is %.40q, want %q", head, netTitle)
	}
	made, rest, _ := strings.Cut(rest, "\n")
	t.Made = strings.TrimPrefix(made, "made-by ")
	var want uint64
	r := strings.NewReader(rest)
	if _, err := fmt.Fscanf(r, "first-generation %x\nweights-hash %x\n", &t.Early, &want); err != nil {
		return nil, fmt.Errorf("line 3: %w", err)
	}
	for i := range t.Least {
		if _, err := fmt.Fscanf(r, "input %d %d "+InputNames[i]+"\n", &t.Least[i], &t.Most[i]); err != nil {
			return nil, fmt.Errorf("input %d: %w", i+1, err)
		}
	}
	for i := range t.Weights {
		if _, err := fmt.Fscan(r, &t.Weights[i]); err != nil {
			return nil, fmt.Errorf("weight %d of %d: %w", i+1, NetWeights, err)
		}
		if w := t.Weights[i]; w > 1000*NetOne || w < -1000*NetOne {
			return nil, fmt.Errorf("weight %d is %d, want at most 1000 times %d", i+1, w, NetOne)
		}
	}
	if t.Hash() != want {
		return nil, fmt.Errorf("the weights have hash %016x, the file says %016x", t.Hash(), want)
	}
	return t, nil
}

//go:embed aiecn.weights
var shippedNet string

// ShippedThresholdNet gives the network that AI-ECN infers with unless it is given another.
func ShippedThresholdNet() (*ThresholdNet, error) { return ParseThresholdNet(shippedNet) }

// log2 gives the logarithm of 1 + x/unit as a multiple of 1/NetOne, linear between powers of two.
func log2(x, unit int64) int32 {
	v := uint64(NetOne + x*NetOne/unit)
	k := bits.Len64(v) - 1
	return int32(int64(k-12)*NetOne + int64(v<<12>>k) - NetOne)
}
