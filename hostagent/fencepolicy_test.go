package hostagent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

var (
	byNetwork = &snsd.Fence{Level: snsd.FenceNetwork, Way: snsd.FenceBySwitch, Hold: 20 * time.Second, Took: 10 * time.Millisecond}
	byTarget  = &snsd.Fence{Level: snsd.FenceArray, Way: snsd.FenceByTarget, Took: 12 * time.Millisecond}
	announced = &snsd.Fence{}
)

// fenceTest is a cell of the policy: what is known, and what is done from when on.
type fenceTest struct {
	name    string
	levels  []*snsd.Fence // of notices: at once, and after 100 ms
	settle  string
	hold    bool // the block is shorter than the array keeps a dead connection
	noKATO  bool
	asking  bool // a Fencer was asked and does not answer
	working bool // the array is at work
	refused bool // it refused
	probe   probed
	want    [3]string // of prefer, require and off: verdict@time, and the report
}

// TestEveryCellOfThePolicy is the table in docs/hosts.md, with what each of its inputs can be.
func TestEveryCellOfThePolicy(t *testing.T) {
	const off = "leave@0s not fenced: fence: off"
	for _, c := range []fenceTest{
		{name: "array at once", levels: []*snsd.Fence{byTarget},
			want: [3]string{"leave@0s fenced: array by target in 12ms", "leave@0s fenced: array by target in 12ms", off}},
		{name: "array later", levels: []*snsd.Fence{announced, byTarget},
			want: [3]string{"leave@100ms fenced: array by target in 12ms", "leave@100ms fenced: array by target in 12ms", off}},
		{name: "network, then array", levels: []*snsd.Fence{byNetwork, byTarget},
			want: [3]string{"leave@100ms fenced: array by target in 12ms", "leave@100ms fenced: array by target in 12ms", off}},
		{name: "network", levels: []*snsd.Fence{announced, byNetwork},
			want: [3]string{"leave@1.1s fenced: network by switch in 10ms", "stay@1s fenced: network by switch in 10ms", off}},
		{name: "network, and a Fencer that does not answer", levels: []*snsd.Fence{announced, byNetwork}, asking: true,
			want: [3]string{"leave@1.1s fenced: network by switch in 10ms", "stay@1s fenced: network by switch in 10ms", off}},
		{name: "network, short settle", levels: []*snsd.Fence{announced, byNetwork}, settle: "200ms",
			want: [3]string{"leave@300ms fenced: array by settle in 210ms", "leave@300ms fenced: array by settle in 210ms", off}},
		{name: "network, no settle to wait for", levels: []*snsd.Fence{announced, byNetwork}, settle: "0s",
			want: [3]string{"leave@100ms fenced: array by settle in 10ms", "leave@100ms fenced: array by settle in 10ms", off}},
		{name: "network, long settle", levels: []*snsd.Fence{announced, byNetwork}, settle: "5s",
			want: [3]string{"leave@1.1s fenced: network by switch in 10ms", "leave@5.1s fenced: array by settle in 5.01s", off}},
		{name: "network, held too shortly", levels: []*snsd.Fence{announced, byNetwork}, settle: "0s", hold: true, probe: unanswered,
			want: [3]string{"leave@1s not fenced: the switch holds its block for 20s, and the array a dead connection for up to 3m2s; nothing was confirmed within 1s",
				"stay@1s not fenced: the switch holds its block for 20s, and the array a dead connection for up to 3m2s; nothing was confirmed within 1s", off}},
		{name: "network, no keep-alive", levels: []*snsd.Fence{byNetwork}, settle: "0s", noKATO: true, probe: unanswered,
			want: [3]string{"leave@1s not fenced: without a keep-alive", "stay@1s not fenced: without a keep-alive", off}},
		{name: "none, announced, dead", levels: []*snsd.Fence{announced}, probe: unanswered,
			want: [3]string{"leave@1s not fenced: nothing was confirmed within 1s", "stay@1s not fenced: nothing was confirmed within 1s", off}},
		{name: "none, announced, not asked yet", levels: []*snsd.Fence{announced},
			want: [3]string{"probe@1s ", "stay@1s ", off}},
		{name: "none, announced, answers", levels: []*snsd.Fence{announced}, probe: answered,
			want: [3]string{"keep@1s ", "stay@1s ", off}},
		{name: "none, an old switch, dead", levels: []*snsd.Fence{nil}, probe: unanswered,
			want: [3]string{"leave@0s not fenced: the switch announces no fence", "stay@0s not fenced: the switch announces no fence", off}},
		{name: "none, an old switch, a Fencer that does not answer", levels: []*snsd.Fence{nil}, asking: true, probe: unanswered,
			want: [3]string{"leave@1s not fenced: the switch announces no fence; nothing was", "stay@1s not fenced: the switch announces no fence; nothing was", off}},
		{name: "network, and the array works on it", levels: []*snsd.Fence{announced, byNetwork}, asking: true, working: true,
			want: [3]string{"leave@17s fenced: network by switch in 10ms", "stay@17s fenced: network by switch in 10ms", off}},
		{name: "network, settle, and the array works on it", levels: []*snsd.Fence{announced, byNetwork}, settle: "5s", asking: true, working: true,
			want: [3]string{"leave@5.1s fenced: array by settle in 5.01s", "leave@5.1s fenced: array by settle in 5.01s", off}},
		{name: "none, and the array works on it", levels: []*snsd.Fence{announced}, asking: true, working: true, probe: unanswered,
			want: [3]string{"leave@17s not fenced: nothing was confirmed within 17s", "stay@17s not fenced: nothing was confirmed within 17s", off}},
		{name: "none, and the array refused after it had begun", levels: []*snsd.Fence{nil}, asking: true, working: true, refused: true, probe: unanswered,
			want: [3]string{"leave@0s not fenced: the switch announces no fence; no agent there", "stay@0s not fenced: the switch announces no fence; no agent there", off}},
		{name: "none, an old switch, a Fencer that refused", levels: []*snsd.Fence{nil}, asking: true, refused: true, probe: unanswered,
			want: [3]string{"leave@0s not fenced: the switch announces no fence; no agent there", "stay@0s not fenced: the switch announces no fence; no agent there", off}},
		{name: "none, an old switch, settle", levels: []*snsd.Fence{nil}, settle: "0s", probe: unanswered,
			want: [3]string{"leave@0s not fenced", "stay@0s not fenced", off}},
	} {
		for i, mode := range []FenceMode{FencePrefer, FenceRequire, FenceOff} {
			if got := c.run(t, mode); !strings.HasPrefix(got, c.want[i]) {
				t.Errorf("%s, %v: %s, want %s", c.name, mode, got, c.want[i])
			}
		}
	}
}

// run returns the first verdict that is no waiting, when it came, and what is reported then.
func (c *fenceTest) run(t *testing.T, mode FenceMode) string {
	start := time.Unix(1000, 0)
	f := fencing{mode: mode, wait: DefaultFenceWait, since: start, need: holdNeeded(5 * time.Second), most: holdNeeded(5 * time.Second), probed: c.probe, asking: c.asking}
	if c.settle != "" {
		d, err := time.ParseDuration(c.settle)
		if err != nil {
			t.Fatal(err)
		}
		f.settle = &d
	}
	if c.hold {
		f.need = holdNeeded(time.Minute)
	}
	if c.noKATO {
		f.need = 0
	}
	for i, now := 0, start; now.Before(start.Add(time.Minute)); i, now = i+1, now.Add(100*time.Millisecond) {
		if i < len(c.levels) {
			f.hear(c.levels[i], now)
		}
		if i == 0 && c.working {
			f.works(now)
		}
		if i == 0 && c.refused {
			f.asked(snsd.Fence{}, errors.New("no agent there"), now)
		}
		if v, until := f.decide(now); v != verdictWait {
			return v.name() + "@" + now.Sub(start).String() + " " + f.result(now).String()
		} else if !until.After(now) {
			t.Fatalf("%s, %v: it waits until %v, which is not later than %v", c.name, mode, until, now)
		}
	}
	return "nothing"
}

func (v verdict) name() string {
	return []string{"wait", "probe", "leave", "stay", "keep"}[v]
}

// Whatever comes in whatever order: with require nothing is left below level "array", no verdict
// waits for a time that is past, and a level that was reached is not lost.
func FuzzFencing(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte("09000000")) // nothing was heard at all
	f.Add([]byte{2, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})
	f.Add([]byte{1, 8, 252, 2, 252, 252, 252, 252, 252, 252, 252, 252}) // the array works, and time passes
	f.Fuzz(func(t *testing.T, script []byte) {
		now := time.Unix(1000, 0)
		settle := 3 * time.Second
		m := fencing{mode: FenceMode(len(script) % 2), wait: DefaultFenceWait, since: now, need: holdNeeded(5 * time.Second), most: holdNeeded(5 * time.Second), asking: len(script)%3 == 0}
		if len(script)%5 == 0 {
			m.settle = &settle
		}
		best := snsd.FenceNone
		for _, b := range script {
			switch b % 11 {
			case 0:
				m.hear(nil, now)
			case 1:
				m.hear(announced, now)
			case 2:
				m.hear(byNetwork, now)
			case 3:
				m.hear(&snsd.Fence{Level: snsd.FenceNetwork, Hold: time.Second}, now)
			case 4:
				m.hear(byTarget, now)
			case 5:
				m.asked(snsd.Fence{}, errors.New("no"), now)
			case 6:
				m.asked(*byTarget, nil, now)
			case 7:
				m.probed = probed(b / 11 % 3)
			case 8:
				m.works(now)
			default:
				now = now.Add(time.Duration(b) * 20 * time.Millisecond)
			}
			v, until := m.decide(now)
			r := m.result(now)
			if r.Level < best {
				t.Fatalf("level %v became %v", best, r.Level)
			}
			best = r.Level
			switch {
			case v == verdictWait && !until.After(now):
				t.Fatalf("it waits until %v, now it is %v", until, now)
			case v == verdictLeave && m.mode == FenceRequire && r.Level != snsd.FenceArray:
				t.Fatalf("require left at %v", r)
			case v == verdictLeave && m.mode == FencePrefer && r.Level == snsd.FenceNone && m.probed != unanswered:
				t.Fatalf("prefer left a path that was not asked: %v", r)
			case r.Level == snsd.FenceNone && v == verdictLeave && r.Why == "":
				t.Fatal("it is not said why there is no fence")
			}
		}
	})
}
