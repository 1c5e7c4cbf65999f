package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// gstrings makes a struct ethtool_gstrings.
func gstrings(names ...string) []byte {
	b := make([]byte, stringsHeader+stringLen*len(names))
	binary.NativeEndian.PutUint32(b[8:], uint32(len(names)))
	for i, n := range names {
		copy(b[stringsHeader+i*stringLen:], n)
	}
	return b
}

func TestParseStrings(t *testing.T) {
	full := strings.Repeat("x", stringLen)
	got := parseStrings(gstrings("rx_ppp0_frames         ", full, "", "a"))
	if d := cmp.Diff([]string{"rx_ppp0_frames", full, "", "a"}, got); d != "" {
		t.Error(d)
	}
	short := gstrings("a", "b")
	binary.NativeEndian.PutUint32(short[8:], 1<<31)
	if got := parseStrings(short); len(got) != 2 {
		t.Errorf("%d names", len(got))
	}
	if got := parseStrings(short[:stringsHeader-1]); got != nil {
		t.Errorf("%v", got)
	}
}

// Counters of drivers: names as ethtool -S shows them, the value of each is its line.
func TestDriversAreUnderstood(t *testing.T) {
	const all = fabric.FieldCRC | fabric.FieldBroadcast | fabric.FieldMulticast | fabric.FieldPause | fabric.FieldPauseTime | fabric.FieldTxFrames
	own := []fabric.CounterName{
		{Driver: "new*", Field: fabric.FieldCRC, Name: "bad_fcs"},
		{Driver: "new*", Field: fabric.FieldPause, Name: "p#.rx"},
		{Driver: "ice", Field: fabric.FieldCRC, Name: "really_crc"},
	}
	for _, c := range []struct {
		driver string
		names  string
		valid  fabric.Fields
		want   fabric.Health
	}{
		{"mlx5_core", "rx_packets rx_crc_errors_phy rx_prio3_pause rx_prio3_pause_duration tx_prio3_pause tx_prio3_packets rx_broadcast_phy rx_multicast_phy",
			all, fabric.Health{RxCRC: 2, RxPause: prio3(3), RxPauseTime: time3(4), TxPause: prio3(5), TxFrames: prio3(6), RxBroadcast: 7, RxMulticast: 8}},
		{"mlx4_en", "rx_pause_prio_3 rx_pause_duration_prio_3 tx_prio_3_packets rx_broadcast_packets rx_multicast_packets", all &^ fabric.FieldCRC,
			fabric.Health{RxPause: prio3(1), RxPauseTime: time3(2), TxFrames: prio3(3), RxBroadcast: 4, RxMulticast: 5}},
		{"mlxsw_spectrum3", "a_frame_check_sequence_errors tx_frames_prio_3 rx_pause_prio_3 rx_pause_duration_prio_3",
			fabric.FieldCRC | fabric.FieldsOfPFC&^(fabric.FieldDeadlocks|fabric.FieldVerdict), fabric.Health{RxCRC: 1, TxFrames: prio3(2), RxPause: prio3(3), RxPauseTime: time3(4)}},
		{"ice", "rx_crc_errors.nic rx_priority_3_xoff.nic tx_priority_3_xoff.nic rx_broadcast.nic", fabric.FieldCRC | fabric.FieldPause | fabric.FieldBroadcast,
			fabric.Health{RxCRC: 1, RxPause: prio3(2), TxPause: prio3(3), RxBroadcast: 4}},
		{"ice", "rx_crc_errors.nic really_crc", fabric.FieldCRC, fabric.Health{RxCRC: 2}},
		{"i40e", "port.rx_crc_errors port.rx_priority_3_xoff_rx", fabric.FieldCRC | fabric.FieldPause, fabric.Health{RxCRC: 1, RxPause: prio3(2)}},
		{"i40e", "port.rx_priority_3_xoff", fabric.FieldPause, fabric.Health{RxPause: prio3(1)}},
		{"ixgbe", "rx_crc_errors rx_pb_3_pxoff broadcast", fabric.FieldCRC | fabric.FieldPause | fabric.FieldBroadcast, fabric.Health{RxCRC: 1, RxPause: prio3(2), RxBroadcast: 3}},
		{"bnxt_en", "rx_fcs_err_frames rx_pfc_ena_frames_pri3 pfc_pri3_rx_duration_us tx_packets_pri3", fabric.FieldCRC | fabric.FieldsOfPFC&^(fabric.FieldDeadlocks|fabric.FieldVerdict),
			fabric.Health{RxCRC: 1, RxPause: prio3(2), RxPauseTime: time3(3), TxFrames: prio3(4)}},
		{"cxgb4", "rx_fcs_errors rx_ppp3_frames tx_ppp3_frames", fabric.FieldCRC | fabric.FieldPause, fabric.Health{RxCRC: 1, RxPause: prio3(2), TxPause: prio3(3)}},
		{"hns3", "mac_rx_fcs_err_pkt_num mac_rx_pfc_pri3_pkt_num", fabric.FieldCRC | fabric.FieldPause, fabric.Health{RxCRC: 1, RxPause: prio3(2)}},
		{"newdrv", "bad_fcs p3.rx rx_crc_errors", fabric.FieldCRC | fabric.FieldPause, fabric.Health{RxCRC: 1, RxPause: prio3(2)}},
		{"other", "rx_crc_errors rx_prio3_pause", fabric.FieldCRC, fabric.Health{RxCRC: 1}},
		{"veth", "peer_ifindex rx_queue_0_xdp_packets", 0, fabric.Health{}},
		{"", "", 0, fabric.Health{}},
	} {
		names := strings.Fields(c.names)
		stats := make([]uint64, len(names))
		for i := range stats {
			stats[i] = uint64(i + 1)
		}
		l := newLayout(c.driver, names, own)
		var got fabric.Health
		l.fill(&got, fabric.AllFields, stats)
		c.want.Valid = c.valid
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %s: %s", c.driver, c.names, d)
		}
		l.fill(&got, fabric.AllFields, nil) // fewer than there were names
	}
}

func prio3(n uint64) (a [fabric.Priorities]uint64) { a[3] = n; return a }
func time3(us int) (a [fabric.Priorities]time.Duration) {
	a[3] = time.Duration(us) * time.Microsecond
	return a
}

// eeprom answers from a module's bytes.
func eeprom(b []byte) func(offset, n int) ([]byte, error) {
	return func(offset, n int) ([]byte, error) {
		if offset > len(b) {
			return nil, fmt.Errorf("offset %d", offset)
		}
		return b[offset:min(offset+n, len(b))], nil
	}
}

func TestReceivedPower(t *testing.T) {
	sfp := func(kind byte, power uint16) []byte {
		b := make([]byte, 512)
		b[92] = kind
		binary.BigEndian.PutUint16(b[360:], power)
		return b
	}
	qsfp := func(power ...uint16) []byte {
		b := make([]byte, 256)
		for i, p := range power {
			binary.BigEndian.PutUint16(b[34+2*i:], p)
		}
		return b
	}
	for _, c := range []struct {
		name string
		kind uint32
		b    []byte
		want int
		err  bool
	}{
		{"SFP with 1 mW", moduleSFF8472, sfp(0x68, 10_000), 0, false},
		{"SFP with 0.1 mW", moduleSFF8472, sfp(0x68, 1000), -10_000, false},
		{"SFP with 0.5 mW", moduleSFF8472, sfp(0x60, 5000), -3010, false},
		{"SFP without light", moduleSFF8472, sfp(0x68, 0), fabric.NoLight, false},
		{"SFP, externally calibrated", moduleSFF8472, sfp(0x58, 1000), 0, true},
		{"copper", moduleSFF8472, sfp(0, 1000), 0, true},
		{"QSFP", moduleSFF8636, qsfp(10_000, 5000, 1000, 10_000), -10_000, false},
		{"QSFP+ with two lanes", moduleSFF8436, qsfp(10_000, 5000), -3010, false},
		{"short", moduleSFF8472, make([]byte, 93), 0, true},
		{"of another kind", 1, sfp(0x68, 1000), 0, true},
	} {
		got, err := rxPower(c.kind, len(c.b), eeprom(c.b))
		if got != c.want || errors.Is(err, errNotTold) != c.err {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
	}
	if _, err := rxPower(moduleSFF8636, 512, eeprom(make([]byte, 20))); err == nil || errors.Is(err, errNotTold) {
		t.Errorf("an EEPROM that ends early: %v", err)
	}
}

// The values are those of the examples in SFF-8472 and SFF-8636, by their units.
func TestModulesTellWhatTheyMeasureAndWhoMadeThem(t *testing.T) {
	sfp := make([]byte, 512)
	sfp[92] = 0x68
	copy(sfp[20:], "EXAMPLE\x00OPTICS  ")
	copy(sfp[68:], "SN-1            ")
	copy(sfp[256+96:], []byte{0xf6, 0x80, 0x80, 0xe8, 0x0c, 0x35, 0x13, 0x88}) // -9.5 C, 3.3 V, 6.25 mA, 0.5 mW
	qsfp := make([]byte, 256)
	copy(qsfp[22:], []byte{0x22, 0x40})
	copy(qsfp[26:], []byte{0x81, 0x24})
	copy(qsfp[42:], []byte{0, 10, 0, 30, 0, 20, 0, 0, 0x27, 0x10, 0x03, 0xe8, 0, 0, 0x27, 0x10})
	copy(qsfp[148:], "ACME            ")
	copy(qsfp[196:], "Q7              ")
	for _, c := range []struct {
		kind uint32
		b    []byte
		want fabric.Optic
	}{
		{moduleSFF8472, sfp, fabric.Optic{Vendor: "EXAMPLEOPTICS", Serial: "SN-1", TxPower: -3010, Bias: 6250, Temperature: -9500, Voltage: 3300}},
		{moduleSFF8636, qsfp, fabric.Optic{Vendor: "ACME", Serial: "Q7", TxPower: -10_000, Bias: 60, Temperature: 34_250, Voltage: 3306}},
	} {
		if got, err := optic(c.kind, len(c.b), eeprom(c.b)); err != nil || got != c.want {
			t.Errorf("%+v, %v, want %+v", got, err, c.want)
		}
	}
	if _, err := optic(moduleSFF8472, 512, eeprom(make([]byte, 512))); !errors.Is(err, errNotTold) {
		t.Errorf("a cable without diagnostics: %v", err)
	}
	if _, err := optic(moduleSFF8636, 512, eeprom(make([]byte, 200))); err == nil {
		t.Error("an EEPROM that ends early is taken")
	}
}

func FuzzEEPROM(f *testing.F) {
	f.Add(uint32(moduleSFF8472), 512, make([]byte, 512))
	f.Add(uint32(moduleSFF8636), 256, make([]byte, 40))
	f.Fuzz(func(t *testing.T, kind uint32, size int, b []byte) {
		if p, err := rxPower(kind, size, eeprom(b)); err == nil && (p < fabric.NoLight || p > 10_000) {
			t.Errorf("power %d", p)
		}
		o, err := optic(kind, size, eeprom(b))
		if err == nil && (o.TxPower < fabric.NoLight || o.TxPower > 10_000 || o.Bias < 0 || strings.ContainsFunc(o.Vendor+o.Serial, func(r rune) bool { return r < ' ' || r > '~' })) {
			t.Errorf("%+v", o)
		}
	})
}

func FuzzStrings(f *testing.F) {
	f.Add("mlx5_core", gstrings("rx_prio3_pause", "rx_crc_errors_phy"), 2)
	f.Fuzz(func(t *testing.T, driver string, b []byte, n int) {
		var h fabric.Health
		l := newLayout(driver, parseStrings(b), nil)
		l.fill(&h, fabric.AllFields, make([]uint64, min(max(n, 0), 1000)))
		if h.Valid&^l.fields != 0 {
			t.Errorf("%v of %v", h.Valid, l.fields)
		}
	})
}

// The library is the second opinion about the kernel's interface.
func TestDriverCountersAgreeWithTheLibrary(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	want, got := map[string]uint64{}, map[string]uint64{}
	sw.do(func() error {
		lib, err := oracle.NewEthtool()
		if err != nil {
			return err
		}
		defer lib.Close()
		e, err := newEthtool(nil)
		if err != nil {
			return err
		}
		defer e.close()
		if want, err = lib.Stats("p0"); err != nil {
			return err
		}
		l, err := e.layout("p0")
		if err != nil || l.driver != "veth" {
			return fmt.Errorf("layout %+v, %w", l, err)
		}
		b := make([]byte, stringsHeader+2*stringLen*l.n)
		binary.NativeEndian.PutUint32(b[4:], statsSet)
		if err := e.ioctl("p0", unix.ETHTOOL_GSTRINGS, b); err != nil {
			return err
		}
		names := parseStrings(b)
		n, err := e.stats("p0", l.n, func(s []uint64) {
			for i, v := range s {
				got[names[i]] = v
			}
		})
		if err != nil || n != l.n {
			return fmt.Errorf("%d counters, %w", n, err)
		}
		// Old kernels give the right number, newer ones 0.
		if n, err := e.stats("p0", l.n+1, func([]uint64) { t.Error("used although the number differs") }); err != nil || n == l.n+1 {
			return fmt.Errorf("%d counters, %w", n, err)
		}
		_, err = e.stats("nope", 1, nil)
		isErr(t, err, fabric.ErrNoPort)
		_, err = e.stats("a-name-that-is-too-long", 1, nil)
		if err == nil {
			t.Error("no error for a name that is too long")
		}
		return nil
	})
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Error(d)
	}
}

// peerIndex is a counter that every veth has, and whose value is known.
var peerIndex = []fabric.CounterName{{Driver: "veth", Field: fabric.FieldCRC, Name: "peer_ifindex"}}

func TestHealthOfAPort(t *testing.T) {
	sw, host := newSpace(t), newSpace(t)
	sw.veth("p0", host, "h0")
	for _, c := range []struct {
		name  string
		own   []fabric.CounterName
		want  fabric.Fields
		valid fabric.Fields
		crc   uint64
	}{
		{"kernel", nil, fabric.AllFields, fabric.FieldCounters | fabric.FieldCRC | fabric.FieldMulticast | fabric.FieldSpeed, 0},
		{"driver", peerIndex, fabric.AllFields, fabric.FieldCounters | fabric.FieldCRC | fabric.FieldMulticast | fabric.FieldSpeed, uint64(host.Link("h0").Attrs().Index)},
		{"one", peerIndex, fabric.FieldCRC, fabric.FieldCRC, uint64(host.Link("h0").Attrs().Index)},
		{"what veth does not have", nil, fabric.FieldsOfPFC | fabric.FieldRxPower | fabric.FieldBroadcast, 0, 0},
		{"nothing", nil, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := start(t, sw, func(cfg *Config) { cfg.Counters = c.own }, "p0")
			r.ready("p0")
			h, err := d.Health("p0", c.want)
			if err != nil {
				t.Fatal(err)
			}
			if h.Valid != c.valid || h.RxCRC != c.crc || time.Since(h.At) > time.Minute {
				t.Errorf("%+v", h)
			}
			if counters, _ := d.Counters("p0"); h.Has(fabric.FieldCounters) && h.Counters.CarrierChanges != counters.CarrierChanges {
				t.Errorf("%+v, %+v", h.Counters, counters)
			}
			_, err = d.Health("nope", c.want)
			isErr(t, err, fabric.ErrNoPort)
		})
	}
}

// BenchmarkHealth128 reads 128 ports once; percent-of-a-core is what a round in each
// 100 ms costs in CPU time of the process and of the kernel for it.
func BenchmarkHealth128(b *testing.B) {
	const ports = 128
	sw, host := newSpace(b), newSpace(b)
	for i := range ports {
		sw.veth(fmt.Sprintf("p%d", i), host, fmt.Sprintf("h%d", i))
	}
	own := []fabric.CounterName{{Driver: "veth", Field: fabric.FieldTxFrames, Name: "rx_queue_#_xdp_packets"}}
	r, d := start(b, sw, func(c *Config) { c.CarrierPoll, c.Counters = time.Hour, own }, "p*")
	for range ports {
		receive(b, r.Events(), "port")
	}
	for _, c := range []struct {
		name string
		want fabric.Fields
	}{{"driver", fabric.FieldTxFrames}, {"kernel", fabric.FieldsOfCounters &^ fabric.FieldCRC}, {"both", fabric.FieldCounters | fabric.FieldTxFrames}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				for i := range ports {
					if h, err := d.Health(names128[i], c.want); err != nil || h.Valid != c.want {
						b.Fatal(h.Valid, err)
					}
				}
			}
			used := cpuTime() - before
			b.ReportMetric(float64(used)/float64(b.N)/float64(100*time.Millisecond)*100, "percent-of-a-core")
		})
	}
}

var names128 = func() (n [128]string) {
	for i := range n {
		n[i] = fmt.Sprintf("p%d", i)
	}
	return n
}()

// An operator names a link statistic as that of damaged frames; it goes before what the
// driver counts, for the drivers it is named for.
func TestALinkStatisticStandsForDamagedFrames(t *testing.T) {
	c := fabric.Counters{RxErrors: 1, RxDrops: 2, RxCRC: 3}
	own := []fabric.CounterName{{Driver: "veth", Field: fabric.FieldCRC, Name: fabric.KernelRxDropped}, {Driver: "d*", Field: fabric.FieldCRC, Name: fabric.KernelRxErrors}}
	for driver, want := range map[string]uint64{"veth": 2, "dummy": 1, "other": 3} {
		l := newLayout(driver, []string{"rx_crc_errors"}, own)
		if got := damaged(l, &c); got != want {
			t.Errorf("%s: %d, want %d", driver, got, want)
		}
		if (l.fields&fabric.FieldCRC != 0) != (driver == "other") {
			t.Errorf("%s: the driver's counter is used: %v", driver, l.fields&fabric.FieldCRC != 0)
		}
	}
	if got := damaged(nil, &c); got != 3 {
		t.Errorf("before the driver is known: %d", got)
	}
}
