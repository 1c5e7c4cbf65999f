package sonic

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/netnstest"
)

func TestReplies(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	for _, c := range []struct {
		in   string
		want []value
		err  error
	}{
		{"+OK\r\n", []value{{"OK", true}}, nil},
		{":12\r\n", []value{{"12", true}}, nil},
		{"$5\r\na\r\nbc\r\n", []value{{"a\r\nbc", true}}, nil},
		{"$-1\r\n", []value{{}}, nil},
		{"$0\r\n\r\n", []value{{"", true}}, nil},
		{"*3\r\n$1\r\na\r\n$-1\r\n:7\r\n", []value{{"a", true}, {}, {"7", true}}, nil},
		{"*0\r\n", []value{}, nil},
		{"*-1\r\n", []value{}, nil},
		{"-ERR no\r\n", nil, errReply},
		{"*2\r\n-ERR no\r\n$1\r\na\r\n", nil, errReply},
		{"?\r\n", nil, errProtocol},
		{"?x\r\n", nil, errProtocol},
		{"$x\r\n", nil, errProtocol},
		{"$70000\r\n", nil, errProtocol},
		{"*5000\r\n", nil, errProtocol},
		{"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", []value{{"0", true}, {"a", true}, {"b", true}}, nil},
		{"*2\r\n$1\r\n0\r\n*0\r\n", []value{{"0", true}}, nil},
		{"*1\r\n*1\r\n*1\r\n$1\r\na\r\n", nil, errProtocol},
		{"$1\r\nabc", nil, errProtocol},
		{"+OK\n", nil, errProtocol},
		{"+" + long, nil, errProtocol},
		{"$5\r\nab", nil, io.ErrUnexpectedEOF},
		{"*2\r\n$1\r\na\r\n", nil, io.EOF},
		{"", nil, io.EOF},
	} {
		got, err := readReply(bufio.NewReaderSize(strings.NewReader(c.in), maxLine))
		if !errors.Is(err, c.err) || err != nil && c.err == nil {
			t.Errorf("%q: error %v, want %v", c.in, err, c.err)
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(value{})); c.err == nil && d != "" {
			t.Errorf("%q: %s", c.in, d)
		}
	}
	if b := appendCommand(nil, "GET", "äb"); string(b) != "*2\r\n$3\r\nGET\r\n$3\r\näb\r\n" {
		t.Errorf("%q", b)
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n:7\r\n+OK\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(b), maxLine)
		for {
			list, err := readReply(r)
			if err != nil && !errors.Is(err, errReply) {
				return
			}
			var h fabric.Health
			portCounters(list, &h)
			watchdog(len(list)%fabric.Priorities, list, &h)
		}
	})
}

// server is a real redis-server with the recorded tables of a switch.
func server(t testing.TB) (address string) {
	t.Helper()
	netnstest.Programs(t, "redis-server")
	address = filepath.Join(t.TempDir(), "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", address, "--save", "", "--appendonly", "no", "--databases", "16")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(40 * time.Second); ; {
		conn, err := net.Dial("unix", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	readDump(t).load(t, address)
	modules := &db{address: address, number: stateDB} // the virtual switch has none: as xcvrd writes them
	defer modules.close()
	set(t, modules, "HSET", "TRANSCEIVER_DOM_SENSOR|Ethernet0", "rx1power", "-2.5", "rx2power", "-3.21", "rx3power", "-2.9dBm", "rx4power", "-inf", "rx5power", "N/A", "temperature", "34.2",
		"voltage", "3.3034", "tx1power", "-1.1", "tx2power", "-1.5", "tx3power", "-inf", "tx4power", "N/A", "tx1bias", "36.1", "tx2bias", "37.25", "tx3bias", "N/A")
	set(t, modules, "HSET", "TRANSCEIVER_INFO|Ethernet0", "manufacturer", "ExampleOptics", "serial", "SN123", "type", "QSFP28")
	return address
}

func set(t testing.TB, d *db, args ...string) {
	t.Helper()
	out, err := d.do(args)
	if err != nil || out[0] == nil {
		t.Fatalf("%q: %v", args, err)
	}
}

func newSource(t testing.TB, address string) *Source {
	t.Helper()
	fake := fabric.NewFake(fabric.FakeConfig{}, fabric.Port{Name: "Ethernet0", AdminUp: true, Carrier: true},
		fabric.Port{Name: "Ethernet24", AdminUp: true, Carrier: true}, fabric.Port{Name: "eth9", AdminUp: true})
	if err := fake.SetCarrier("Ethernet0", false); err != nil {
		t.Fatal(err)
	}
	s := New(fake, address, nil)
	t.Cleanup(s.close)
	return s
}

func TestHealthFromASwitch(t *testing.T) {
	address := server(t)
	s := newSource(t, address)
	got, err := s.Health("Ethernet0", fabric.AllFields)
	if err != nil {
		t.Fatal(err)
	}
	want := fabric.Health{At: got.At, Valid: fabric.AllFields &^ (fabric.FieldPauseTime | fabric.FieldTxFrames | fabric.FieldPortECN | fabric.FieldBuffer),
		Counters: fabric.Counters{RxFrames: 123456789 + 4321, RxBytes: got.Counters.RxBytes, RxErrors: 18, RxDrops: got.Counters.RxDrops,
			TxFrames: got.Counters.TxFrames, TxBytes: got.Counters.TxBytes, CarrierChanges: 1},
		Speed: 10_000_000_000,
		Optic: fabric.Optic{Vendor: "ExampleOptics", Serial: "SN123", TxPower: -1500, Bias: 37250, Temperature: 34200, Voltage: 3303},
		RxCRC: 17, RxCRCOf: ofErrors, RxBroadcast: 21, RxMulticast: 4300, Deadlocked: 1 << 3, Guarded: 1<<3 | 1<<4, Dropping: 1 << 3, RxPower: -3210}
	want.RxPause[3], want.Deadlocks[3], want.ECNMarks[3] = 998877, 1, 555
	for _, q := range []int{3, 4} {
		want.Marking[q] = fabric.Marking{Mode: fabric.MarkingStatic, Low: 250000, High: 2097152, Probability: 0.05}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// A port without queues that are looked after, without watchdog and module.
	got, err = s.Health("Ethernet24", fabric.AllFields)
	if without := fabric.FieldsOfModule | fabric.FieldMarking | fabric.FieldDeadlocks | fabric.FieldVerdict | fabric.FieldRestored; err != nil || got.Valid&without != 0 || !got.Has(fabric.FieldsOfCounters) || got.RxCRC != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// A port that the ASIC does not have.
	if got, err := s.Health("eth9", fabric.AllFields); err != nil || got.Valid != fabric.FieldCounters {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Health("nope", fabric.FieldCounters); !errors.Is(err, fabric.ErrNoPort) {
		t.Errorf("%v", err)
	}
	if st := s.Stats(); st.Errors != 0 {
		t.Errorf("%+v", st)
	}
}

// Thresholds are those of the queue's profile, whichever way the key names the queue; of a profile
// that marks nothing, is not there or says no threshold nothing is told.
func TestMarkingStandsInTheProfileOfAQueue(t *testing.T) {
	address := server(t)
	s, w := newSource(t, address), &db{address: address, number: configDB}
	t.Cleanup(w.close)
	set(t, w, "HSET", "QUEUE|Ethernet0|3-4", "scheduler", "scheduler.1", "wred_profile", "AZURE_LOSSLESS")
	set(t, w, "HSET", "QUEUE|Ethernet0|6", "wred_profile", "[WRED_PROFILE|OLD]")
	set(t, w, "HSET", "QUEUE|Ethernet0|0", "wred_profile", "DROPS")
	set(t, w, "HSET", "QUEUE|Ethernet0|1", "wred_profile", "NONE")
	set(t, w, "HSET", "QUEUE|Ethernet0|2", "wred_profile", "BROKEN")
	set(t, w, "HSET", "QUEUE|Ethernet0|5", "scheduler", "scheduler.0")
	set(t, w, "HSET", "QUEUE|Ethernet0,Ethernet24|7", "wred_profile", "AZURE_LOSSLESS")
	profile := func(name, ecn, low, high, percent string) {
		set(t, w, "HSET", "WRED_PROFILE|"+name, "ecn", ecn, "green_min_threshold", low, "green_max_threshold", high, "green_drop_probability", percent)
	}
	profile("AZURE_LOSSLESS", "ecn_all", "250000", "2097152", "5")
	profile("OLD", "ecn_green_yellow", "1000", "2000", "100")
	profile("DROPS", "ecn_none", "1000", "2000", "100")
	profile("BROKEN", "ecn_all", "-1", "2000", "1000")
	h, err := s.Health("Ethernet0", fabric.FieldMarking)
	if err != nil || h.Valid != fabric.FieldMarking {
		t.Fatalf("%+v, %v", h, err)
	}
	var want [fabric.Priorities]fabric.Marking
	want[3] = fabric.Marking{Mode: fabric.MarkingStatic, Low: 250000, High: 2097152, Probability: 0.05}
	want[4], want[6] = want[3], fabric.Marking{Mode: fabric.MarkingStatic, Low: 1000, High: 2000, Probability: 1}
	if d := cmp.Diff(want, h.Marking); d != "" {
		t.Error(d)
	}
	if h, err := s.Health("Ethernet24", fabric.FieldMarking); err != nil || h.Valid != 0 {
		t.Errorf("a port without profiles: %+v, %v", h, err)
	}
}

func TestWatchdogThatEndsAStorm(t *testing.T) {
	address := server(t)
	s := newSource(t, address)
	w := &db{address: address, number: countersDB}
	t.Cleanup(w.close)
	queues := readDump(t)["2"]["COUNTERS_QUEUE_NAME_MAP"]
	queue := queues["Ethernet0:3"]
	for _, c := range []struct {
		status string
		mask   uint8
	}{{"operational", 0}, {"stormed", 1 << 3}, {"nonsense", 0}} {
		set(t, w, "HSET", "COUNTERS:"+queue, watchdogStatus, c.status, watchdogDeadlocks, "not a number")
		if h, err := s.Health("Ethernet0", fabric.FieldDeadlocks); err != nil || h.Valid != fabric.FieldDeadlocks || h.Deadlocked != c.mask {
			t.Errorf("%s: %+v, %v", c.status, h, err)
		}
	}
	set(t, w, "DEL", "COUNTERS:"+queue, "COUNTERS:"+queues["Ethernet0:4"])
	if h, err := s.Health("Ethernet0", fabric.FieldDeadlocks); err != nil || h.Valid != 0 {
		t.Errorf("%+v, %v", h, err)
	}
	set(t, w, "SET", "COUNTERS:"+queue, "not a hash")
	if h, err := s.Health("Ethernet0", fabric.FieldDeadlocks); err != nil || h.Valid != 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

// The kernel's counters of a switch's port are those of its processor: none is better.
func TestWithoutRedisNothingIsTold(t *testing.T) {
	s := newSource(t, filepath.Join(t.TempDir(), "nothing.sock"))
	if h, err := s.Health("Ethernet0", fabric.AllFields); err == nil || h.Valid != 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := s.Health("Ethernet0", fabric.FieldCRC); err == nil || !strings.Contains(err.Error(), "tried again in") {
		t.Errorf("%v", err)
	}
	if st := s.Stats(); st.Errors != 2 || st.Reads != 2 {
		t.Errorf("%+v", st)
	}
}

func TestAServerThatAnswersNonsenseIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("+OK\r\nHTTP/1.1 400 Bad Request\r\n"))
			defer c.Close()
		}
	}()
	s := newSource(t, l.Addr().String())
	if _, err := s.Health("Ethernet0", fabric.FieldCRC); !errors.Is(err, errProtocol) {
		t.Errorf("%v", err)
	}
}

func BenchmarkHealth(b *testing.B) {
	s := newSource(b, server(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Health("Ethernet0", fabric.FieldsOfPFC); err != nil {
			b.Fatal(err)
		}
	}
}
