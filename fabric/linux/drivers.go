package linux

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/fabric"
)

// driverNames are what drivers call their counters (ethtool -S); # stands for the
// priority. Of several names of one field the first that a port has counts; those of
// Config.Counters come before these. pauseTime is in microseconds.
var driverNames = []driverName{
	// Found in the drivers' sources as of Linux 6.18; the stars take in names that
	// differ by bus or generation, such as mlx5_core and mlxsw_spectrum3.
	{"mlx5*", fabric.FieldCRC, "rx_crc_errors_phy"},
	{"mlx5*", fabric.FieldBroadcast, "rx_broadcast_phy"},
	{"mlx5*", fabric.FieldMulticast, "rx_multicast_phy"},
	{"mlx5*", fabric.FieldPause, "rx_prio#_pause"},
	{"mlx5*", txPause, "tx_prio#_pause"},
	{"mlx5*", fabric.FieldPauseTime, "rx_prio#_pause_duration"},
	{"mlx5*", fabric.FieldTxFrames, "tx_prio#_packets"},

	{"mlx4*", fabric.FieldBroadcast, "rx_broadcast_packets"},
	{"mlx4*", fabric.FieldMulticast, "rx_multicast_packets"},
	{"mlx4*", fabric.FieldPause, "rx_pause_prio_#"},
	{"mlx4*", txPause, "tx_pause_prio_#"},
	{"mlx4*", fabric.FieldPauseTime, "rx_pause_duration_prio_#"},
	{"mlx4*", fabric.FieldTxFrames, "tx_prio_#_packets"},

	{"mlxsw*", fabric.FieldCRC, "a_frame_check_sequence_errors"},
	{"mlxsw*", fabric.FieldBroadcast, "a_broadcast_frames_received_ok"},
	{"mlxsw*", fabric.FieldMulticast, "a_multicast_frames_received_ok"},
	{"mlxsw*", fabric.FieldPause, "rx_pause_prio_#"},
	{"mlxsw*", txPause, "tx_pause_prio_#"},
	{"mlxsw*", fabric.FieldPauseTime, "rx_pause_duration_prio_#"},
	{"mlxsw*", fabric.FieldTxFrames, "tx_frames_prio_#"},
	{"mlxsw*", fabric.FieldPortECN, "ecn_marked"},

	{"ice", fabric.FieldCRC, "rx_crc_errors.nic"},
	{"ice", fabric.FieldBroadcast, "rx_broadcast.nic"},
	{"ice", fabric.FieldMulticast, "rx_multicast.nic"},
	{"ice", fabric.FieldPause, "rx_priority_#_xoff.nic"},
	{"ice", txPause, "tx_priority_#_xoff.nic"},

	{"i40e", fabric.FieldCRC, "port.rx_crc_errors"},
	{"i40e", fabric.FieldBroadcast, "port.rx_broadcast"},
	{"i40e", fabric.FieldMulticast, "port.rx_multicast"},
	{"i40e", fabric.FieldPause, "port.rx_priority_#_xoff_rx"},
	{"i40e", fabric.FieldPause, "port.rx_priority_#_xoff"}, // before Linux 5.4
	{"i40e", txPause, "port.tx_priority_#_xoff_tx"},
	{"i40e", txPause, "port.tx_priority_#_xoff"},

	{"ixgbe", fabric.FieldCRC, "rx_crc_errors"},
	{"ixgbe", fabric.FieldBroadcast, "broadcast"},
	{"ixgbe", fabric.FieldMulticast, "multicast"},
	{"ixgbe", fabric.FieldPause, "rx_pb_#_pxoff"},
	{"ixgbe", txPause, "tx_pb_#_pxoff"},

	{"bnxt*", fabric.FieldCRC, "rx_fcs_err_frames"},
	{"bnxt*", fabric.FieldBroadcast, "rx_bcast_frames"},
	{"bnxt*", fabric.FieldMulticast, "rx_mcast_frames"},
	{"bnxt*", fabric.FieldPause, "rx_pfc_ena_frames_pri#"},
	{"bnxt*", txPause, "tx_pfc_ena_frames_pri#"},
	{"bnxt*", fabric.FieldPauseTime, "pfc_pri#_rx_duration_us"},
	{"bnxt*", fabric.FieldTxFrames, "tx_packets_pri#"},

	{"cxgb4", fabric.FieldCRC, "rx_fcs_errors"},
	{"cxgb4", fabric.FieldBroadcast, "rx_broadcast_frames"},
	{"cxgb4", fabric.FieldMulticast, "rx_multicast_frames"},
	{"cxgb4", fabric.FieldPause, "rx_ppp#_frames"},
	{"cxgb4", txPause, "tx_ppp#_frames"},

	{"qede", fabric.FieldCRC, "rx_crc_errors"},
	{"qede", fabric.FieldBroadcast, "rx_bcast_pkts"},
	{"qede", fabric.FieldMulticast, "rx_mcast_pkts"},

	{"hns3", fabric.FieldCRC, "mac_rx_fcs_err_pkt_num"},
	{"hns3", fabric.FieldBroadcast, "mac_rx_broad_pkt_num"},
	{"hns3", fabric.FieldMulticast, "mac_rx_multi_pkt_num"},
	{"hns3", fabric.FieldPause, "mac_rx_pfc_pri#_pkt_num"},
	{"hns3", txPause, "mac_tx_pfc_pri#_pkt_num"},

	{"*", fabric.FieldCRC, "rx_crc_errors"}, // what many others say
	{"*", fabric.FieldBroadcast, "rx_broadcast"},
	{"*", fabric.FieldMulticast, "rx_multicast"},
}

type driverName struct {
	driver string // glob
	field  fabric.Fields
	name   string
}

// txPause stands for the second counter of FieldPause.
const txPause fabric.Fields = 1 << 31

// none is where a counter is that a driver does not have.
const none = -1

// layout is where a port's counters are in what its driver tells.
type layout struct {
	driver    string
	n         int // counters in all
	fields    fabric.Fields
	crc       int
	broadcast int
	multicast int
	marked    int
	pause     [fabric.Priorities]int
	txPause   [fabric.Priorities]int
	pauseTime [fabric.Priorities]int
	txFrames  [fabric.Priorities]int
	// kernelCRC is the link statistic that stands for damaged frames, named by the
	// operator; empty: none is.
	kernelCRC string
}

// newLayout finds the counters among the names that a driver gives.
func newLayout(driver string, names []string, own []fabric.CounterName) *layout {
	l := &layout{driver: driver, n: len(names), crc: none, broadcast: none, multicast: none, marked: none}
	for p := range fabric.Priorities {
		l.pause[p], l.txPause[p], l.pauseTime[p], l.txFrames[p] = none, none, none, none
	}
	at := make(map[string]int, len(names))
	for i, n := range names {
		if _, twice := at[n]; !twice {
			at[n] = i
		}
	}
	for _, n := range own {
		if l.fromKernel(n) {
			continue
		}
		l.find(driverName{n.Driver, n.Field, n.Name}, at)
	}
	for _, n := range driverNames {
		l.find(n, at)
	}
	return l
}

// fromKernel takes a name that is a link statistic.
func (l *layout) fromKernel(n fabric.CounterName) bool {
	if !strings.HasPrefix(n.Name, fabric.KernelCounter) {
		return false
	}
	if ok, _ := path.Match(n.Driver, l.driver); ok && n.Field == fabric.FieldCRC && l.kernelCRC == "" && l.crc == none {
		l.kernelCRC = n.Name
	}
	return true
}

// find looks for one counter, unless the field has one already.
func (l *layout) find(n driverName, at map[string]int) {
	if ok, _ := path.Match(n.driver, l.driver); !ok || l.fields&n.field != 0 || n.field == fabric.FieldCRC && l.kernelCRC != "" {
		return
	}
	single := map[fabric.Fields]*int{fabric.FieldCRC: &l.crc, fabric.FieldBroadcast: &l.broadcast, fabric.FieldMulticast: &l.multicast, fabric.FieldPortECN: &l.marked}
	if slot := single[n.field]; slot != nil {
		if i, ok := at[n.name]; ok {
			*slot = i
			l.fields |= n.field
		}
		return
	}
	each := map[fabric.Fields]*[fabric.Priorities]int{fabric.FieldPause: &l.pause, txPause: &l.txPause,
		fabric.FieldPauseTime: &l.pauseTime, fabric.FieldTxFrames: &l.txFrames}[n.field]
	if each == nil {
		return
	}
	for p := range each {
		if i, ok := at[strings.Replace(n.name, "#", strconv.Itoa(p), 1)]; ok {
			each[p] = i
			l.fields |= n.field
		}
	}
}

// fill takes the wanted fields from a driver's counters.
func (l *layout) fill(h *fabric.Health, want fabric.Fields, stats []uint64) {
	get := func(i int) uint64 {
		if i < 0 || i >= len(stats) {
			return 0
		}
		return stats[i]
	}
	want &= l.fields
	if want&fabric.FieldCRC != 0 {
		h.RxCRC = get(l.crc)
	}
	if want&fabric.FieldBroadcast != 0 {
		h.RxBroadcast = get(l.broadcast)
	}
	if want&fabric.FieldMulticast != 0 {
		h.RxMulticast = get(l.multicast)
	}
	if want&fabric.FieldPortECN != 0 {
		h.ECNMarked = get(l.marked)
	}
	for p := range fabric.Priorities {
		if want&fabric.FieldPause != 0 {
			h.RxPause[p], h.TxPause[p] = get(l.pause[p]), get(l.txPause[p])
		}
		if want&fabric.FieldPauseTime != 0 {
			h.RxPauseTime[p] = time.Duration(min(get(l.pauseTime[p]), maxMicroseconds)) * time.Microsecond
		}
		if want&fabric.FieldTxFrames != 0 {
			h.TxFrames[p] = get(l.txFrames[p])
		}
	}
	h.Valid |= want
}

// maxMicroseconds is what a Duration can hold: 292 years.
const maxMicroseconds = uint64(1<<63-1) / uint64(time.Microsecond)
