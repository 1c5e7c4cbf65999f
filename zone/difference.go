package zone

import (
	"fmt"
	"slices"
)

// Differences says in one line each what is in set now and was not in old, and the other
// way round: zones by their names, and members of zones that are in both. At most limit
// lines come back, then one that says how many more there are.
func Differences(old, now Set, limit int) []string {
	before := make(map[string][]Member, len(old.Zones))
	for _, z := range old.Canonical().Zones {
		before[z.Name] = z.Members
	}
	var out []string
	more := 0
	say := func(format string, args ...any) {
		if len(out) == limit {
			more++
			return
		}
		out = append(out, fmt.Sprintf(format, args...))
	}
	for _, z := range now.Canonical().Zones {
		members, had := before[z.Name]
		delete(before, z.Name)
		if !had {
			say("+ zone %s with %d member(s)", z.Name, len(z.Members))
			continue
		}
		for _, m := range members {
			if !slices.Contains(z.Members, m) {
				say("- member %s of zone %s", m, z.Name)
			}
		}
		for _, m := range z.Members {
			if !slices.Contains(members, m) {
				say("+ member %s of zone %s", m, z.Name)
			}
		}
	}
	for _, z := range old.Canonical().Zones {
		if members, gone := before[z.Name]; gone {
			say("- zone %s with %d member(s)", z.Name, len(members))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}
