package model

import (
	"fmt"
	"strings"
	"testing"
)

// A network is small, answers 0..9 whatever it is given, and allocates nothing.
func TestThresholdNetAnswers(t *testing.T) {
	net, err := ShippedThresholdNet()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(net.Text()); n > 4096 {
		t.Errorf("%d bytes", n)
	}
	rng, seen := RNG(1), map[int]bool{}
	for range 10_000 {
		var in [NetInputs]int32
		for i := range in {
			in[i] = int32(rng.Intn(NetOne + 1))
		}
		l := net.level(&in)
		if seen[l] = true; l < 0 || l >= netLevels {
			t.Fatalf("level %d", l)
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d levels", len(seen))
	}
	in := [NetInputs]int32{}
	if n := testing.AllocsPerRun(100, func() { net.level(&in) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// Weights that were changed by hand, cut short or are of something else are refused.
func TestBadWeightsAreRefused(t *testing.T) {
	net, err := ShippedThresholdNet()
	if err != nil {
		t.Fatal(err)
	}
	text := net.Text()
	other := *net
	other.Weights[5]++
	for what, bad := range map[string]string{
		"empty": "", "cut": text[:len(text)/2], "title": "x" + text, "changed": strings.Replace(other.Text(), fmt.Sprintf("%016x", other.Hash()), fmt.Sprintf("%016x", net.Hash()), 1),
		"hash": strings.Replace(text, "weights-hash ", "weights-hash f", 1), "huge": strings.Replace(text, "\n-", "\n-9999999", 1),
	} {
		if _, err := ParseThresholdNet(bad); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if err := (&AIECN{Mode: "guess", Elephant: 1, Every: 1, First: 2, Least: 1, Most: 3, Percent: 1, PerRate: 1}).Check(); err == nil {
		t.Error("a mode that does not exist is accepted")
	}
}

// The guard: at most one level an interval, never outside the safety policy.
func TestInferenceIsGuarded(t *testing.T) {
	a := &inferredECN{aiECN: aiECN{par: &AIECN{Least: 20_000, Most: 1_500_000}}}
	low := int64(160_000)
	for _, c := range []struct {
		level int
		want  int64
	}{{9, 320_000}, {9, 640_000}, {9, 1_280_000}, {9, 1_500_000}, {0, 750_000}, {5, 640_000}, {0, 320_000}, {0, 160_000}, {0, 80_000}, {0, 40_000}, {0, 20_000}, {0, 20_000}} {
		if low = a.step(low, c.level); low != c.want {
			t.Errorf("level %d: %d, want %d", c.level, low, c.want)
		}
	}
}

func BenchmarkThresholdNet(b *testing.B) {
	net, err := ShippedThresholdNet()
	if err != nil {
		b.Fatal(err)
	}
	in := [NetInputs]int32{1, 2, 3, 4, 5, 6, 7}
	for b.Loop() {
		net.level(&in)
	}
}
