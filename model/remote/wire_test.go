package remote

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
)

// Every line comes out as it went in.
func TestLinesComeOutAsTheyWentIn(t *testing.T) {
	up := true
	port := fabric.Port{Name: "eth1", Index: 3, MAC: fabric.MAC{2, 1, 2, 3, 4, 5}, MTU: 9000, AdminUp: true, Carrier: true}
	health := fabric.Health{Valid: fabric.AllFields, Counters: fabric.Counters{RxFrames: 1<<64 - 1}, RxPauseTime: [8]time.Duration{3: time.Second}}
	var b bytes.Buffer
	ups := []Up{{Send: &Frame{Port: "eth1", Data: []byte{1, 2, 3}}}, {Ask: &Ask{ID: 7, Port: "eth1", Admin: &up}}, {Ask: &Ask{ID: 8, Port: "eth1", Want: fabric.AllFields}}}
	downs := []Down{{Event: NewEvent(fabric.Event{Kind: fabric.PortAdded, Port: port, At: time.Unix(5, 6)})}, {Ready: true}, {Frame: &Frame{Port: "eth1", Data: make([]byte, 9216), At: 9}}, {Answer: &Answer{ID: 7, Error: "no"}}, {Answer: &Answer{ID: 8, Health: &health}}}
	for _, l := range ups {
		if err := Write(&b, l); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range downs {
		if err := Write(&b, l); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&b)
	for _, want := range ups {
		var got Up
		if err := r.Read(&got); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(want, got))
		}
	}
	for _, want := range downs {
		var got Down
		if err := r.Read(&got); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%v\n%s", err, cmp.Diff(want, got))
		}
	}
	if err := r.Read(&Up{}); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestBadLines(t *testing.T) {
	for _, text := range []string{"\n", "{", "[]\n", `{"send": 5}` + "\n", `{"unknown": 1}` + "\n", `{"ask": {"id": -1}}` + "\n", strings.Repeat(" ", MaxLine+1)} {
		if err := NewReader(strings.NewReader(text)).Read(&Up{}); !errors.Is(err, ErrLine) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// A fabric that says what it likes does a daemon no harm.
func FuzzDown(f *testing.F) {
	f.Add([]byte(`{"event": {"kind": 1, "port": {"name": "eth1"}, "at_ns": 5}}` + "\n" + `{"ready": true}` + "\n" + `{"frame": {"port": "eth1", "data": "AQIDBAUGBwgJCgsMDQ4P"}}` + "\n" + `{"answer": {"id": 1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := New(Config{Access: []string{"eth*"}})
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(bytes.NewReader(data))
		for range maxEvents {
			var line Down
			if r.Read(&line) != nil {
				return
			}
			d.take(t.Context(), &line)
		}
	})
}
