package scenario

import "testing"

// Where traffic enters a tunnel, and behind its end, a mark is the inner header's and hosts notify,
// whatever the tunnel does. Between the two the mark is the outer one's: hosts learn of it if the
// far end copies it, or if who marks marks the inner header, too; else nobody does.
func TestWhereMarksCrossATunnel(t *testing.T) {
	for _, c := range []struct {
		where, from, to string // of traffic
		stage           string
		notified        bool
	}{
		{"at the entry", "[h0, h1]", "[h2, h4]", "copy-outer: false", true},
		{"at the entry", "[h0, h1]", "[h2, h4]", "copy-outer: true", true},
		{"between", "[h0, h2]", "[h4, h5]", "copy-outer: false", false},
		{"between", "[h0, h2]", "[h4, h5]", "copy-outer: true", true},
		{"between", "[h0, h2]", "[h4, h5]", "copy-outer: false, mark-inner: true", true},
		{"behind the end", "[h0, h5]", "[h4, h4]", "copy-outer: false", true},
		{"behind the end", "[h0, h5]", "[h4, h4]", "copy-outer: true", true},
	} {
		// Over before PFC has pushed the congestion back to the entry.
		m := runWith(t, "vxlan-ecn", []Setting{{"duration", "80us"}, {"until-idle", "false"}, {"traffic.in.from", c.from}, {"traffic.in.to", c.to},
			{"switch.stages", "[{kind: vxlan, " + c.stage + "}]"}}).Metrics
		if m["marks"] < 10 || m["xoff"] > 0 || m["cnps"] > 0 != c.notified {
			t.Errorf("congested %s, %s: %g marks, %g notifications, %g XOFF", c.where, c.stage, m["marks"], m["cnps"], m["xoff"])
		}
	}
}
