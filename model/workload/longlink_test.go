package workload

import (
	"testing"

	"github.com/openinof/inof/model"
)

// seventy is 70 km at 100G with frames of 4,200 bytes.
func seventy() (LongLink, model.Headroom, int64) {
	h := model.Headroom{Rate: 100 * model.Gbps, Delay: model.KM(70), MTU: 4200, Reaction: model.Microsecond, Cell: LongCell}
	l := LongLink{Rate: h.Rate, Delay: h.Delay, MTU: h.MTU, Reaction: h.Reaction, Period: 20 * model.Microsecond}
	return l, h, h.Rate.Bytes(2 * h.Delay)
}

// TestModelBufferLaw: at 70 km and 100G classic PFC needs XOFF at B x 2T and as much
// headroom, point braking B x 2T; at these sizes nothing is lost and the drain is
// used to 99 %; below, one or the other fails.
func TestModelBufferLaw(t *testing.T) {
	l, h, b2t := seventy()
	type outcome struct{ lost, starved bool }
	try := func(name string, l LongLink) (o outcome) {
		for _, p := range Drains(2*l.Delay, l.Rate) {
			l.Pattern = p
			r, err := l.Run()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%-34s %-22s drops %6d use %.4f peak %.3f x B2T", name, p.Name, r.Drops, r.Use, float64(r.Peak)/float64(b2t))
			o.lost = o.lost || r.Drops > 0
			o.starved = o.starved || r.Use < 0.99
		}
		return o
	}
	classic, brake := l, l
	classic.Xoff, classic.Headroom = h.Xoff(), h.Bytes()
	brake.ABS, brake.Buffer = true, h.BrakedBuffer(l.Period, 0)
	for name, c := range map[string]struct {
		l    LongLink
		want outcome
	}{
		"classic at 2 (B x 2T)":      {classic, outcome{}},
		"classic, headroom 3 % less": {with(classic, func(l *LongLink) { l.Headroom = l.Headroom * 97 / 100 }), outcome{lost: true}},
		"classic, XOFF 10 % lower":   {with(classic, func(l *LongLink) { l.Xoff = l.Xoff * 9 / 10 }), outcome{starved: true}},
		"classic in B x 2T in all":   {with(classic, func(l *LongLink) { l.Xoff, l.Headroom = b2t/2, b2t/2 }), outcome{lost: true, starved: true}},
		"braking at B x 2T":          {brake, outcome{}},
		"braking, 5 % less":          {with(brake, func(l *LongLink) { l.Buffer = l.Buffer * 95 / 100 }), outcome{lost: true}},
	} {
		if got := try(name, c.l); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func with(l LongLink, f func(*LongLink)) LongLink {
	f(&l)
	return l
}
