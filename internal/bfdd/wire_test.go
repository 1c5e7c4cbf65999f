package bfdd

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/bfd"
)

var samples = map[string]message{
	`{"hello":{"protocol":1,"build":"v1","pid":7,"started":9,"device":"10.0.0.1"}}`: {Hello: &hello{1, "v1", 7, 9, "10.0.0.1"}},
	`{"want":{"seq":3,"peers":[{"peer":"10.0.0.2","local":"10.0.0.1","multihop":true,"Timers":{"min_tx_ns":100000000,"min_rx_ns":100000000,"detect_mult":3,"min_echo_rx_ns":0},"Passive":false,"AdminDown":true,"MinTTL":0,"Auth":null,"Last":"down"}]}}`: {
		Want: &want{Seq: 3, Peers: []bfd.Peer{{Key: bfd.Key{Peer: netip.MustParseAddr("10.0.0.2"), Local: netip.MustParseAddr("10.0.0.1"), Multihop: true},
			Timers: bfd.DefaultTimers(), AdminDown: true, Last: bfd.ReportDown}}}},
	`{"ask":{"id":5}}`:     {Ask: &ask{5}},
	`{"stop":{"why":"x"}}`: {Stop: &stop{"x"}},
	`{"paths":{"events":[{"peer":"10.0.0.2","local":"10.0.0.1","multihop":true,"report":"down","diag":"neighbor signaled session down","remote_diag":"detection time expired","at":123,"heard":100,"flaps":1}]}}`: {
		Paths: &paths{[]event{{Key: bfd.Key{Peer: netip.MustParseAddr("10.0.0.2"), Local: netip.MustParseAddr("10.0.0.1"), Multihop: true},
			Report: bfd.ReportDown, Diag: bfd.DiagNeighborDown, RemoteDiag: bfd.DiagDetectTime, At: 123, Heard: 100, Flaps: 1}}}},
	`{"done":{"seq":3,"error":"e"}}`:      {Done: &done{3, "e"}},
	`{"status":{"id":5,"sessions":null}}`: {Status: &status{ID: 5}},
	`{"bye":{"why":"y"}}`:                 {Bye: &bye{"y"}},
}

func TestMessagesOnTheWire(t *testing.T) {
	for line, m := range samples {
		b, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(b); got != line+"\n" {
			t.Errorf("encoded\n%s want\n%s", got, line)
		}
		back, err := decode([]byte(line), m.Hello != nil)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if d := cmp.Diff(m, back, cmp.AllowUnexported(message{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

func TestWhatIsNotAMessageIsRefused(t *testing.T) {
	for _, line := range []string{
		"", "{}", "null", "[]", "7", `{"ask":{"id":1}} {"ask":{"id":2}}`, `{"ask":{"id":1},"stop":{"why":""}}`, `{"ask":{"id":1,"x":2}}`,
		`{"new":{}}`, `{"hello":{"protocol":1}}`, `{"ask":{"id":-1}}`, `{"want":{"peers":[{"peer":"x"}]}}`, `{"paths":{"events":[{"report":"gone"}]}}`, `{"ask"`,
	} {
		if m, err := decode([]byte(line), false); !errors.Is(err, ErrMessage) {
			t.Errorf("%q: %+v, %v", line, m, err)
		}
	}
	if _, err := decode([]byte(`{"ask":{"id":1}}`), true); !errors.Is(err, ErrMessage) {
		t.Errorf("a first line that is no hello: %v", err)
	}
	if m, err := decode([]byte(`{"hello":{"protocol":2,"build":"later","more":true}}`), true); err != nil || m.Hello.Protocol != 2 {
		t.Errorf("a hello of a later protocol: %+v, %v", m, err)
	}
	in := newLines(strings.NewReader(strings.Repeat("x", MaxLine+1)))
	if _, err := in.next(); !errors.Is(err, ErrLine) {
		t.Errorf("a line without an end: %v", err)
	}
	if err := (event{Report: bfd.ReportUp}).check(); err == nil {
		t.Error("a report without a peer is taken")
	}
}

func TestMomentsKeepTheirAge(t *testing.T) {
	now := time.Now()
	e := bfd.Event{Key: bfd.Key{Peer: netip.MustParseAddr("10.0.0.2")}, At: now.Add(-time.Second), Flaps: 2}
	w := toWire(e, now, 5_000_000_000)
	if w.At != 4_000_000_000 || w.Heard != 0 {
		t.Errorf("on the wire %+v", w)
	}
	later := now.Add(3 * time.Second).Add(0)
	back := w.fromWire(later, 8_000_000_000)
	if !back.At.Equal(e.At) || !back.Heard.IsZero() || back.Flaps != 2 {
		t.Errorf("back %+v", back)
	}
}

func FuzzDecode(f *testing.F) {
	for line := range samples {
		f.Add([]byte(line), strings.HasPrefix(line, `{"hello"`))
	}
	f.Fuzz(func(t *testing.T, line []byte, first bool) {
		m, err := decode(line, first)
		if err != nil {
			return
		}
		b, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(b, first)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if b2, err := encode(again); err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("%s and %s, %v", b, b2, err)
		}
	})
}
