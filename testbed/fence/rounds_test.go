package fence

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/testbed/fence/round"
)

// EnvRounds chooses what `make fence` plays: ci, all (each combination three times), or a regular
// expression over place/cause/policy/agent, and place/cause/policy/switches.
const EnvRounds = "INOF_FENCE"

// No write that was acknowledged is lost where there is a fence; without one writes are.
func TestFence(t *testing.T) {
	which := os.Getenv(EnvRounds)
	if which == "" {
		t.Skip("SKIPPED: make fence")
	}
	rounds := Chosen()
	switch which {
	case "ci":
	case "all":
		rounds = nil
		for range 3 {
			rounds = append(rounds, All()...)
		}
	default:
		only := regexp.MustCompile(which)
		rounds = slices.DeleteFunc(All(), func(s round.Spec) bool { return !only.MatchString(Name(s)) })
	}
	if len(rounds) == 0 {
		t.Fatalf("%s=%s chooses no round of place/cause/policy/by; one is %s", EnvRounds, which, Name(Chosen()[0]))
	}
	b := up(t)
	var table strings.Builder
	table.WriteString("| place/cause/policy/by | A | reported | longest stall | detected after | copies |\n| --- | --- | --- | --- | --- | --- |\n")
	off, seen := map[round.Place]int{}, map[round.Place]int{}
	apart := 0
	for _, s := range rounds {
		began := time.Now()
		s.Trace = os.Getenv(EnvTrace) != ""
		r, err := play(t, b, s)
		for _, line := range r.Log {
			t.Log(line)
		}
		if err != nil {
			t.Errorf("%s: %v", Name(s), err)
			continue
		}
		if s.Policy == "off" {
			off[s.Place]++
			if r.Lost {
				seen[s.Place]++
			}
		}
		wrong, counted := Judge(s, r)
		for _, w := range wrong {
			t.Errorf("%s: %s: %+v", Name(s), w, r)
		}
		verdict := map[bool]string{true: "lost", false: "kept"}[r.Lost]
		if counted {
			verdict, apart = "lost, counted apart", apart+1
		}
		row := fmt.Sprintf("| %s | %s | %s | %s | %s (%s) | %d |\n", Name(s), verdict, r.Report, short(r.Acked), short(r.Noticed), r.Reason, r.Copies)
		table.WriteString(row)
		t.Logf("%.1f s: %s", time.Since(began).Seconds(), row)
	}
	t.Logf("%d losses counted apart\n%s", apart, table.String())
	for _, p := range places {
		if off[p] > 0 && seen[p] == 0 {
			t.Errorf("place %s: without a fence %d rounds lost nothing: the judge is broken", p, off[p])
		}
	}
}

// The rule fails what it must fail, and nothing else.
func TestTheRuleOfARound(t *testing.T) {
	for _, c := range []struct {
		spec  round.Spec
		res   round.Result
		wrong int
		apart bool
	}{
		{spec(round.Execute, "link-down", "prefer", true), round.Result{Level: levelArray, Other: true}, 0, false},
		{spec(round.Execute, "link-down", "prefer", true), round.Result{Level: levelArray, Other: true, Lost: true}, 1, false},
		{spec(round.Execute, "link-down", "prefer", true), round.Result{Level: levelNetwork, Other: true, Lost: true}, 1, true},
		{spec(round.Execute, "link-down", "prefer", false), round.Result{Level: levelNetwork, Other: true, Lost: true}, 0, true},
		{spec(round.Host, "bfd-down", "prefer", false), round.Result{Level: levelNetwork, Other: true, Lost: true}, 1, false},
		{spec(round.Host, "bfd-down", "prefer", false), round.Result{Level: "none", Other: true}, 1, false},
		{spec(round.Host, "zone-changed", "prefer", false), round.Result{Level: "none", Other: true, Lost: true}, 0, true},
		{spec(round.Execute, "zone-changed", "prefer", true), round.Result{Copies: 1, Other: true}, 0, false},
		{spec(round.Execute, "zone-changed", "prefer", true), round.Result{Copies: 2, Other: true}, 1, false},
		{spec(round.Execute, "link-down", "prefer", true), round.Result{Copies: 1, Other: true}, 1, false},
		{spec(round.Host, "zone-changed", "require", false), round.Result{Level: "none", Other: true, Lost: true}, 1, false},
		{spec(round.Host, "link-down", "prefer", true), round.Result{Level: levelArray}, 1, false},
		{spec(round.Host, "link-down", "off", false), round.Result{Lost: true}, 0, false},
	} {
		wrong, apart := Judge(c.spec, c.res)
		if len(wrong) != c.wrong || apart != c.apart {
			t.Errorf("%s %+v: %q, apart %v; want %d, %v", Name(c.spec), c.res, wrong, apart, c.wrong, c.apart)
		}
	}
}
