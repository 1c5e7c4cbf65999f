package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const studied = `name: studied
about: two flows
duration: 300us
until-idle: true
topology: {kind: star, hosts: 3, link: {rate: 100G, delay: 1us}}
congestion: cx4
traffic: [{name: in, kind: incast, from: h0..h1, to: h2, bytes: 100KB}]
`

// Settings replace keys wherever they stand, and make what is not there.
func TestParseWith(t *testing.T) {
	f, err := ParseWith("x.yaml", []byte(studied), []Setting{
		{"switch.ecn.low", "50KB"}, {"traffic.in.bytes", "200KB"}, {"congestion.additive", "1G"}, {"traffic.0.gap", "3us"}, {"duration", "1ms"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Switch.ECN == nil || f.Switch.ECN.Low != 50_000 || f.Traffic[0].Bytes != 200_000 || f.Traffic[0].Gap != 3_000_000 || f.Duration != 1_000_000_000 {
		t.Errorf("got %+v", f)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]string{"traffic.out.bytes": `no entry "out"`, "switch.ecn.lwo": "unknown key; known: when"} {
		if _, err := ParseWith("x.yaml", []byte(studied), []Setting{{key, "1"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", key, err, want)
		}
	}
}

// A sweep runs all combinations, and a seed gives the same figures however many run at a time.
func TestRunStudy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studied.yaml")
	if err := os.WriteFile(path, []byte(studied), 0o600); err != nil {
		t.Fatal(err)
	}
	variants, err := Product(path, []string{"switch.balancer={kind: flowlet, gap: 20us},spray", "traffic.in.bytes=50KB,100KB"})
	if err != nil || len(variants) != 4 || variants[1].Name != "balancer={kind: flowlet, gap: 20us} bytes=100KB" {
		t.Fatalf("%v %v", variants, err)
	}
	told := 0
	one, err := RunStudy(t.Context(), variants, 3, 1, func(done, all int) {
		if told++; done != told || all != 3*len(variants) {
			t.Errorf("%d of %d after %d runs", done, all, told)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	many, err := RunStudy(t.Context(), variants, 3, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range one.Variants {
		s := v.Metrics["in.fct-max-ms"]
		if s != many.Variants[i].Metrics["in.fct-max-ms"] || s.Runs != 3 || !(s.Low > 0 && s.Low <= s.Median && s.Median <= s.High) {
			t.Errorf("%s: %+v and %+v", v.Name, s, many.Variants[i].Metrics["in.fct-max-ms"])
		}
	}
	if small, big := one.Variants[0].Metrics["in.fct-max-ms"], one.Variants[1].Metrics["in.fct-max-ms"]; small.Median >= big.Median {
		t.Errorf("50 KB take %v ms, 100 KB %v", small, big)
	}
	if _, err := Product(path, []string{"switch.buffer"}); err == nil {
		t.Error("a key without values was accepted")
	}
}
