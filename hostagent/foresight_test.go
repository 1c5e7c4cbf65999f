package hostagent

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/snsd"
)

func TestWhatIsForeseen(t *testing.T) {
	short, long, asked := 200*time.Millisecond, 5*time.Second, errors.New("connection refused")
	for _, c := range []struct {
		x    foreseeable
		want string // level, way, stall, data
		lack string
	}{
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, announce: true}, "array by target|some 50 ms, and as long|no late copy", ""},
		{foreseeable{mode: FenceRequire, kato: 5 * time.Second}, "array by target|some 50 ms, and as long|no late copy", "the switch did not announce"},
		{foreseeable{mode: FenceOff, kato: 5 * time.Second, announce: true}, "array by target|some 50 ms|a copy of a write", ""},
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, announce: true, observe: true}, "array by target|until the kernel|a copy of a write", ""},
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, announce: true, array: asked, settle: &short}, "array by settle|some 50 ms and the settle, 200ms|no late copy", "connection refused"},
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, announce: true, array: asked, settle: &long}, "array by settle|some 1s|a write that had reached", "connection refused"},
		{foreseeable{mode: FenceRequire, kato: 5 * time.Second, announce: true, array: asked, settle: &long}, "array by settle|some 50 ms and the settle, 5s|no late copy", ""},
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, announce: true, array: asked}, "network by switch|some 1s|a write that had reached", "settle is not set"},
		{foreseeable{mode: FenceRequire, kato: 5 * time.Second, announce: true, array: asked}, "network by switch|until the kernel|a copy of a write", ""},
		{foreseeable{mode: FencePrefer, kato: time.Minute, announce: true, array: asked, wait: time.Second}, "none by |some 1.15s, if|a copy of a write", "hold its block for 3m2s"},
		{foreseeable{mode: FencePrefer, announce: true, array: asked, settle: &short, wait: time.Second}, "none by |some 1.15s, if|a copy of a write", "no keep-alive"},
		{foreseeable{mode: FencePrefer, kato: 5 * time.Second, array: asked}, "none by |some 150ms, if|a copy of a write", "did not announce"},
		{foreseeable{mode: FenceRequire, kato: 5 * time.Second, array: asked}, "none by |until the kernel|a copy of a write", "did not announce"},
	} {
		var f Foresight
		f.judge(c.x)
		parts := strings.Split(c.want, "|")
		if got := f.Level.String() + " by " + f.Way.String(); got != parts[0] || !strings.HasPrefix(f.Stall, parts[1]) || !strings.HasPrefix(f.Data, parts[2]) || !strings.Contains(strings.Join(f.Lacks, "; "), c.lack) {
			t.Errorf("%+v: %+v, want %s and %q", c.x, f, c.want, c.lack)
		}
	}
}

// checkingFencer can be asked beforehand.
type checkingFencer struct {
	fakeFencer
	no error
}

func (f *checkingFencer) Check(context.Context, FencePair) error { return f.no }

func TestEachControllerIsForeseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil)
		defer b.stop()
		p := b.Policy()
		p.Fence = FencePrefer
		b.SetPolicy(p)
		got, err := b.Foresee(t.Context(), []PortStatus{{Addresses: []netip.Addr{self1}, Fences: true}})
		if err != nil || len(got) != 2 || got[0].Level != snsd.FenceNetwork || got[1].Level != snsd.FenceNone || !strings.Contains(strings.Join(got[0].Lacks, ";"), "no fence-service") {
			t.Errorf("%+v, %v", got, err)
		}
		b.FenceBy(&checkingFencer{no: errors.New("it does not know this host")})
		if got, _ = b.Foresee(t.Context(), nil); !strings.Contains(strings.Join(got[1].Lacks, ";"), "does not know this host") {
			t.Errorf("%+v", got)
		}
		b.FenceBy(&checkingFencer{})
		if got, _ = b.Foresee(t.Context(), nil); got[0].Level != snsd.FenceArray {
			t.Errorf("%+v", got)
		}
		b.kernel.Lose(1)
		if got, _ = b.Foresee(t.Context(), nil); got[0].Level != snsd.FenceNone || got[1].Level != snsd.FenceArray {
			t.Errorf("%+v", got)
		}
	})
}
