package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/openinof/inof/internal/api"
)

// Rule is one thing that can be wrong.
type Rule struct {
	Name string // for programs; words with hyphens, never changed
	When string // when it is raised: one sentence for the documentation
	Do   string // what an operator does about it: the end of each of its warnings
	// Find returns a text for each thing that is wrong now: what, where, which value.
	// Nil: the warnings are of events that name the rule, until Memory after the last.
	Find   func(f *Facts) []string
	Memory time.Duration
}

// Rules are all of them, in the order in which warnings are shown: what endangers hosts
// now comes before what will.
func Rules() []Rule { return slices.Concat(deviceRules, sessionRules, loadRules, fabricRules) }

// Warnings returns what the facts and the incidents say, in the order of the rules, and
// then what clients report.
func Warnings(f *Facts, incidents *Incidents) api.Warnings {
	list := api.Warnings{}
	rules := Rules()
	for _, r := range rules {
		if r.Find == nil {
			list = append(list, incidents.of(&r, f.Now)...)
			continue
		}
		for _, text := range r.Find(f) {
			list = append(list, api.Warning{Rule: r.Name, Text: text, Do: r.Do})
		}
	}
	return append(list, reported(f, rules)...)
}

// when is the one text of what is wrong, if it is.
func when(is bool, format string, args ...any) []string {
	if !is {
		return nil
	}
	return []string{fmt.Sprintf(format, args...)}
}

// mostNamed is how many things of one kind have a warning each; the rest is counted.
const mostNamed = 8

// most gives a text for each of a list, and how many more there are than can be named.
func most[T any](list []T, more string, text func(*T) string) (out []string) {
	for i := range list {
		if i == mostNamed {
			return append(out, fmt.Sprintf(more, len(list)-i))
		}
		out = append(out, text(&list[i]))
	}
	return out
}
