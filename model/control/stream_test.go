package control

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/model"
)

// What is written at one end is taken at the other, every byte once and in order,
// whatever is lost on the way; then the stream ends at both.
func TestStreamsCarryEveryByte(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(rt, nil)
		r.pass(model.Second)
		a, b := r.p.devices[r.node["l0"]], r.p.devices[r.node["s0"]]
		for _, l := range []string{"l0-s0", "l1-s0"} {
			r.s.SetLoss(r.link[l], rapid.Float64Range(0, 0.3).Draw(rt, "loss"))
		}
		var there, back []byte
		var took [2]bytes.Buffer
		var end [2]error
		b.listen = func(st *stream) {
			st.taken = func(p []byte) { took[0].Write(p) }
			st.ended = func(err error) { end[0] = err; st.close() }
			for len(back) < 100_000 {
				p := make([]byte, rapid.IntRange(1, 20_000).Draw(rt, "back"))
				for i := range p {
					p[i] = byte(len(back) + i*7)
				}
				back = append(back, p...)
				st.write(p)
			}
		}
		st := a.dialStream(r.node["s0"], portINOF)
		st.taken = func(p []byte) { took[1].Write(p) }
		st.ended = func(err error) { end[1] = err }
		st.opened = func() {
			for len(there) < 200_000 {
				p := make([]byte, rapid.IntRange(1, 90_000).Draw(rt, "there"))
				for i := range p {
					p[i] = byte(len(there)*3 + i)
				}
				there = append(there, p...)
				st.write(p)
			}
		}
		for range 1000 {
			if len(there) > 0 && took[0].Len() == len(there) && took[1].Len() == len(back) {
				break
			}
			r.pass(model.Second)
		}
		if !bytes.Equal(took[0].Bytes(), there) || !bytes.Equal(took[1].Bytes(), back) {
			rt.Fatalf("%d of %d bytes there, %d of %d back", took[0].Len(), len(there), took[1].Len(), len(back))
		}
		st.close()
		for range 1000 {
			if end[0] != nil && st.state == streamClosed {
				break
			}
			r.pass(model.Second)
		}
		if !errors.Is(end[0], errClosed) || st.state != streamClosed || end[1] != nil {
			rt.Fatalf("the ends: %v, %v, state %d", end[0], end[1], st.state)
		}
	})
}

// A connection to a switch that does not listen is refused; one to a dead switch is not
// answered at all.
func TestConnectionsNobodyTakes(t *testing.T) {
	r := newRig(t, nil)
	r.pass(model.Second)
	var err error
	st := r.p.devices[r.node["l0"]].dialStream(r.node["l1"], portINOF)
	st.ended = func(e error) { err = e }
	r.pass(10 * model.Millisecond)
	if !errors.Is(err, errReset) {
		t.Errorf("refused with %v", err)
	}
	r.p.KillSwitch(r.node["s0"])
	err = nil
	st = r.p.devices[r.node["l0"]].dialStream(r.node["s0"], portINOF)
	st.ended = func(e error) { err = e }
	r.pass(10 * model.Second)
	if err != nil || st.state != streamOpening || st.resent < 2 {
		t.Errorf("%v, state %d, sent again %d times", err, st.state, st.resent)
	}
}
