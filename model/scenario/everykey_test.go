package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/openinof/inof/model"
)

// whole is a file in which every key of the reference may be set.
const whole = `name: x
duration: 60us
seed: 3
congestion: paper
topology:
  kind: explicit
  nodes:
    - {name: a, kind: host}
    - {name: b, kind: host}
    - {name: c, kind: host}
    - {name: s, kind: switch}
  links:
    - {a: a, b: s, rate: 100G, delay: 1us}
    - {a: b, b: s, rate: 100G, delay: 1us}
    - {a: c, b: s, rate: 100G, delay: 1us}
traffic:
  - {name: t, kind: incast, from: [a, b], to: c, bytes: 200KB}
faults:
  - {at: 50us, kind: loss, link: a-s, probability: 0.001}
expect:
  - {metric: drops, max: 0}
`

// keysWritten lists the keys of the file that the reference says to be of a type, as they are set.
func keysWritten(kind string) (out []string) {
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| " + kind + "( |:)")
	file, _, _ := strings.Cut(Reference(), "\n## `")
	for _, m := range row.FindAllStringSubmatch(file, -1) {
		out = append(out, strings.ReplaceAll(m[1], "[]", ".0"))
	}
	return out
}

// valuesOf lists the values of all mechanisms that are of a type, each as a setting of the file.
func valuesOf(kind, value string) (out []Setting) {
	for _, p := range model.Parts {
		key := map[model.Part]string{model.PartCongestion: "congestion", model.PartReceiver: "nic.receiver"}[p.Part]
		if key == "" {
			key = "switch." + string(p.Part)
		}
		for _, m := range model.Mechanisms(p.Part) {
			for _, k := range model.Keys(m.New()) {
				if k.Type == kind {
					out = append(out, Setting{key, fmt.Sprintf("{kind: %s, %s: %s}", m.Kind, k.Name, value)})
				}
			}
		}
	}
	return out
}

// What is no number passes nowhere: not at a key of the file, not at a value of a mechanism.
func TestNoKeyTakesWhatIsNoNumber(t *testing.T) {
	if _, err := Parse("x.yaml", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{".nan", ".inf", "-.inf"} {
		settings := valuesOf("number", value)
		for _, key := range keysWritten("number") {
			settings = append(settings, Setting{key, value})
		}
		if len(settings) < 15 {
			t.Fatalf("only %d keys take a number", len(settings))
		}
		for _, set := range settings {
			_, err := ParseWith("x.yaml", []byte(whole), []Setting{set})
			var p Problem
			if !errors.As(err, &p) || p.Line == 0 || !strings.Contains(err.Error(), value+" is no number") {
				t.Errorf("%s: %s: %v", set.Key, set.Value, err)
			}
		}
	}
}

// A size beyond 31 bits is refused with its line, or is what the largest size of 31 bits is: more
// than any buffer holds. It never wraps to a small one.
func TestSizesBeyond31BitsDoNotWrap(t *testing.T) {
	beyond := func(value string) (out []Setting) {
		for _, key := range keysWritten("size") {
			if strings.HasPrefix(key, "switch.") && key != "switch.buffer" || strings.HasPrefix(key, "nic.") {
				out = append(out, Setting{key, value})
			}
		}
		return append(out, valuesOf("size", value)...)
	}
	run := func(set Setting) (uint64, error) {
		with := []Setting{set}
		switch {
		case strings.HasPrefix(set.Key, "switch.cells."):
			with = append(with, Setting{"switch.model", "cells"})
		case strings.HasPrefix(set.Key, "switch.pfc.braking"):
			with = append(with, Setting{"switch.model", "cells"}, Setting{"switch.pfc.braking", "3"})
		case set.Key == "nic.rx-buffer":
			with = append(with, Setting{"nic.rx-rate", "10G"})
		case set.Key == "switch.ecn.low":
			with = append(with, Setting{"switch.ecn.high", "2000TB"}, Setting{"switch.ecn.percent", "1"})
		}
		f, err := ParseWith("x.yaml", []byte(whole), with)
		if err != nil {
			return 0, err
		}
		f.Trace, f.Expect = true, nil
		if err := f.Check(); err != nil {
			return 0, err
		}
		res, err := f.Run(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: %s: %v", set.Key, set.Value, err)
		}
		return res.Hash, nil
	}
	largest, ran := beyond("2147483647"), 0
	for _, value := range []string{"2147483648", "4294967296", "4294967396", "5GB", "1000TB"} {
		for i, set := range beyond(value) {
			got, err := run(set)
			if err != nil {
				var p Problem
				if !errors.As(err, &p) || p.Line == 0 {
					t.Errorf("%s: %s: %v", set.Key, set.Value, err)
				}
				continue
			}
			ran++
			if want, err := run(largest[i]); err != nil || got != want {
				t.Errorf("%s: %s: another run than with %s (%v)", set.Key, set.Value, largest[i].Value, err)
			}
		}
	}
	if ran < 20 {
		t.Errorf("only %d sizes were tried", ran)
	}
}
