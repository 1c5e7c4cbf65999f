package testbed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed/truth"
)

// The table of truth itself, checked against what the comments of the topology say.
func TestTruthOfAPulledCable(t *testing.T) {
	tr := newDemoTruth()
	for _, a := range tr.Places() {
		tr.SetAgent(a.Addr, true)
	}
	gone := netip.MustParseAddr("192.0.2.21")
	var got []string
	for _, n := range tr.goes(truth.LinkDown, gone).Sorted() {
		got = append(got, n.String())
	}
	want := []string{
		"192.0.2.11 told 192.0.2.21 is inactive (link-down)",
		"192.0.2.22 told 192.0.2.21 is inactive (link-down)",
		"198.51.100.11 told 192.0.2.21 is inactive (link-down)",
		"198.51.100.21 told 192.0.2.21 is inactive (link-down)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for addr, why := range map[string]string{"192.0.2.12": "no zone shared", "192.0.2.21": "its own address"} {
		if got := tr.silent(netip.MustParseAddr(addr), []netip.Addr{gone}); got != why {
			t.Errorf("%s not told: %q, want %q", addr, got, why)
		}
	}
	if n := len(tr.comes(gone)); n != 8 {
		t.Errorf("%d notices when it is back, want 4 to its peers and 4 to itself", n)
	}
	i2 := netip.MustParseAddr("198.51.100.12")
	if n := len(tr.join("replication", i2)); n != 2 {
		t.Errorf("%d notices for a new pair, want both sides of one pair", n)
	}
	if n := len(tr.leave("replication", i2)); n != 2 {
		t.Errorf("%d notices for a broken pair, want both sides of one pair", n)
	}
}

// The demo's topology and the table of truth are about the same fabric.
func TestDemoTopologyMatchesTheTruth(t *testing.T) {
	topo, err := LoadFS(labs.FS, labs.Demo)
	if err != nil {
		t.Fatal(err)
	}
	links := make(map[string]string)
	for _, k := range topo.Links {
		links[k.A.String()], links[k.B.String()] = k.B.String(), k.A.String()
	}
	for _, a := range newDemoTruth().Places() {
		if got := links[a.Node+":"+a.NIC]; got != a.Switch+":"+a.Port {
			t.Errorf("%s: the cable goes to %s, the truth says %s:%s", a, got, a.Switch, a.Port)
		}
		found := false
		for _, ag := range topo.Node(a.Node).Agents {
			found = found || ag.Port == a.NIC && strings.Contains(strings.Join(ag.Args, " "), "--address "+a.Addr.String()+" ")
		}
		if !found {
			t.Errorf("%s: no agent at %s registers it", a, a.NIC)
		}
	}
	if len(topo.Ignored) > 0 {
		t.Errorf("ignored: %v", topo.Ignored)
	}
}

// fakeDemo is a demo without a lab, whose one agent writes to a file of the test.
func fakeDemo(t *testing.T) (*demo, *bytes.Buffer, func(string)) {
	file := filepath.Join(testRoot(t), "snsd.out")
	write := func(s string) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = io.WriteString(f, s)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	write("")
	out := new(bytes.Buffer)
	d := &demo{DemoOptions: DemoOptions{Out: out}, truth: newDemoTruth(), agents: newAgents()}
	d.agents.output.Add("x/snsd", file)
	t.Cleanup(d.agents.close)
	return d, out, write
}

func TestAStepCountsEveryWrongNotice(t *testing.T) {
	d, out, write := fakeDemo(t)
	for _, a := range d.truth.Places() {
		d.truth.SetAgent(a.Addr, true)
	}
	at := time.Now()
	line := func(host, subject, state, seq string) {
		write(`{"time":"` + at.Add(500*time.Microsecond).Format(time.RFC3339Nano) + `","event":"notice","host":"` + host +
			`","subject":"` + subject + `","state":"` + state + `","reason":"link-down","seq":` + seq + "}\n")
	}
	write(`{"time":"2026-01-01T00:00:00Z","event":"ready"}` + "\n")
	for i, h := range []string{"192.0.2.11", "192.0.2.22", "198.51.100.11"} {
		line(h, "192.0.2.21", "inactive", string(rune('1'+i)))
	}
	line("192.0.2.11", "192.0.2.21", "inactive", "1") // a retry: not wrong
	line("192.0.2.22", "192.0.2.21", "inactive", "7") // told twice
	line("192.0.2.12", "192.0.2.21", "inactive", "8") // not its zone
	want := d.truth.goes(truth.LinkDown, d.truth.of("t1", "A"))
	plan := stepPlan{title: "x", want: want, about: []netip.Addr{d.truth.of("t1", "A")}, carrier: true, quiet: time.Millisecond}
	// The missing notice is only counted once the time is over: it comes last.
	line("198.51.100.21", "192.0.2.21", "inactive", "9")
	plan.do = func() (time.Time, error) { return at, nil }
	if err := d.step(context.Background(), plan); err != nil {
		t.Fatal(err)
	}
	if d.sum.Expected != 4 || d.sum.Received != 6 || d.sum.Unexpected != 2 || len(d.problem) != 2 {
		t.Errorf("summary %+v, problems %q", d.sum, d.problem)
	}
	sum := d.finish(nil)
	if sum.Latency != (Latency{500, 500, 500}) {
		t.Errorf("latency %+v, want 500 us", sum.Latency)
	}
	if s := out.String(); !strings.HasSuffix(s, `{"steps":1,"notices_expected":4,"notices_received":6,"unexpected":2,"fault_to_notice_us":{"min":500,"median":500,"max":500}}`+"\n") {
		t.Errorf("output\n%s", s)
	}
}

// What a switch repeats, since it has no ack of it, is told when it is due and nothing new
// otherwise.
func TestARepeatedNoticeIsTheOneThatIsDue(t *testing.T) {
	d, _, write := fakeDemo(t)
	at := time.Now()
	for i, subject := range []string{"192.0.2.11", "192.0.2.22"} {
		write(fmt.Sprintf(`{"time":%q,"event":"duplicate","host":"192.0.2.21","subject":%q,"state":"active","seq":%d}`+"\n",
			at.Format(time.RFC3339Nano), subject, i+1))
	}
	plan := stepPlan{title: "x", quiet: time.Millisecond, want: truth.Notices{}}
	plan.want[truth.Notice{Host: netip.MustParseAddr("192.0.2.21"), Subject: netip.MustParseAddr("192.0.2.11"), State: truth.Active}] = true
	if err := d.step(context.Background(), plan); err != nil {
		t.Fatal(err)
	}
	if d.sum.Expected != 1 || d.sum.Received != 1 || len(d.problem) != 0 {
		t.Errorf("summary %+v, problems %q", d.sum, d.problem)
	}
}

// A host that asks is told again what it knows: each of its peers once for each query.
func TestAnAnswerToAZoneQueryIsNoMistake(t *testing.T) {
	d, out, write := fakeDemo(t)
	at, seq := time.Now(), 0
	line := func(after time.Duration, subject string) {
		seq++
		write(fmt.Sprintf(`{"time":%q,"event":"notice","host":"192.0.2.21","subject":%q,"state":"active","seq":%d}`+"\n",
			at.Add(after).Format(time.RFC3339Nano), subject, seq))
	}
	line(time.Millisecond, "192.0.2.11")
	write(fmt.Sprintf(`{"time":%q,"event":"query","addresses":["192.0.2.21"]}`+"\n", at.Add(2*time.Millisecond).Format(time.RFC3339Nano)))
	line(3*time.Millisecond, "192.0.2.11")
	line(4*time.Millisecond, "192.0.2.11") // told once more than it asked
	line(5*time.Second, "192.0.2.22")      // first told, whatever it asked
	line(16*time.Second, "192.0.2.22")     // asked too long ago
	d.agents.last[told{netip.MustParseAddr("192.0.2.21"), netip.MustParseAddr("192.0.2.11")}] = truth.Active
	plan := stepPlan{title: "x", quiet: time.Millisecond, want: truth.Notices{}}
	for _, subject := range []string{"192.0.2.11", "192.0.2.22"} {
		plan.want[truth.Notice{Host: netip.MustParseAddr("192.0.2.21"), Subject: netip.MustParseAddr(subject), State: truth.Active}] = true
	}
	plan.do = func() (time.Time, error) { return at, nil }
	if err := d.step(context.Background(), plan); err != nil {
		t.Fatal(err)
	}
	if d.sum.Expected != 2 || d.sum.Received != 4 || d.sum.Unexpected != 2 ||
		!strings.Contains(out.String(), "1 notices said once more what a host knew") {
		t.Errorf("summary %+v, problems %q, output\n%s", d.sum, d.problem, out)
	}
}

func TestMissingNoticesAreNamed(t *testing.T) {
	d, _, _ := fakeDemo(t)
	for _, a := range d.truth.Places() {
		d.truth.SetAgent(a.Addr, true)
	}
	d.judge(stepPlan{want: d.truth.goes(truth.LinkDown, d.truth.of("t1", "A"))}, time.Now(), nil)
	if len(d.problem) != 4 || !strings.Contains(d.problem[0], "missing: i1 192.0.2.11 about t1 192.0.2.21: inactive (link-down)") {
		t.Errorf("problems %q", d.problem)
	}
}

func TestAgentOutputThatIsNotJSONIsAnError(t *testing.T) {
	d, _, write := fakeDemo(t)
	write("panic: oh\n")
	if _, err := d.agents.read(); err == nil || !strings.Contains(err.Error(), "x/snsd") {
		t.Errorf("error %v, want one that names the agent", err)
	}
}

func TestQuantiles(t *testing.T) {
	var ds []time.Duration
	for i := 200; i >= 1; i-- {
		ds = append(ds, time.Duration(i)*time.Microsecond)
	}
	want := Quantiles{Trials: 200, Min: 1, Median: 100.5, P99: 198, Max: 200}
	if diff := cmp.Diff(want, quantiles(ds)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Quantiles{}, quantiles(nil)); diff != "" {
		t.Error(diff)
	}
}
