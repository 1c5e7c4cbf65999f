package sonic

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/openinof/inof/fabric"
)

// Names in COUNTERS_DB are those of the SAI statistics.
var portFields = func() []string {
	f := []string{
		inErrors:   "SAI_PORT_STAT_IF_IN_ERRORS",
		unicast:    "SAI_PORT_STAT_IF_IN_UCAST_PKTS",
		nonUnicast: "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS",
		broadcast:  "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS",
		multicast:  "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS",

		inOctets:      "SAI_PORT_STAT_IF_IN_OCTETS",
		outOctets:     "SAI_PORT_STAT_IF_OUT_OCTETS",
		outUnicast:    "SAI_PORT_STAT_IF_OUT_UCAST_PKTS",
		outNonUnicast: "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS",
		inDiscards:    "SAI_PORT_STAT_IF_IN_DISCARDS",
		outDiscards:   "SAI_PORT_STAT_IF_OUT_DISCARDS",
		outErrors:     "SAI_PORT_STAT_IF_OUT_ERRORS",
		outBroadcast:  "SAI_PORT_STAT_IF_OUT_BROADCAST_PKTS",
		outMulticast:  "SAI_PORT_STAT_IF_OUT_MULTICAST_PKTS",
		oversize:      "SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS",
		undersize:     "SAI_PORT_STAT_ETHER_STATS_UNDERSIZE_PKTS",
		fecErrors:     "SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES",
	}
	for p := range fabric.Priorities {
		f = append(f, "SAI_PORT_STAT_PFC_"+strconv.Itoa(p)+"_RX_PKTS", "SAI_PORT_STAT_PFC_"+strconv.Itoa(p)+"_TX_PKTS")
	}
	return f
}()

// Places in portFields.
const (
	inErrors = iota
	unicast
	nonUnicast
	broadcast
	multicast
	inOctets
	outOctets
	outUnicast
	outNonUnicast
	inDiscards
	outDiscards
	outErrors
	outBroadcast
	outMulticast
	oversize
	undersize
	fecErrors
	firstPFC // receive and transmit of each priority
)

// Fields of a queue that SONiC's PFC watchdog keeps.
const (
	watchdogStatus    = "PFC_WD_STATUS"
	watchdogStormed   = "stormed"
	watchdogDeadlocks = "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"
	watchdogRestored  = "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"
	watchdogAction    = "PFC_WD_ACTION"
	watchdogDrops     = "drop"
)

// Of a queue and of a priority group; they are there where their groups are polled
// (counterpoll). The peaks are those since the last poll: reading one clears it in the ASIC. Those
// that last are in the tables USER_WATERMARKS, PERIODIC_WATERMARKS and PERSISTENT_WATERMARKS.
const (
	queueMarked  = "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"
	queuePeak    = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
	headroomPeak = "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES"
)

// opticFields are what TRANSCEIVER_DOM_SENSOR has of a module beside what it receives: two
// values, then bias and power of each lane.
var opticFields = func() []string {
	f := []string{"temperature", "voltage"}
	for lane := 1; lane <= 8; lane++ {
		f = append(f, fmt.Sprintf("tx%dbias", lane), fmt.Sprintf("tx%dpower", lane))
	}
	return f
}()

// powerFields are the lanes of a module in TRANSCEIVER_DOM_SENSOR.
var powerFields = []string{"rx1power", "rx2power", "rx3power", "rx4power", "rx5power", "rx6power", "rx7power", "rx8power"}

// number reads a total.
func number(v value) (uint64, bool) {
	n, err := strconv.ParseUint(v.text, 10, 64)
	return n, v.ok && err == nil
}

// portCounters takes what the ASIC counts on a port.
func portCounters(list []value, h *fabric.Health) {
	take := func(i int, to *uint64, field fabric.Fields) bool {
		n, ok := number(at(list, i))
		if ok {
			*to = n
			h.Valid |= field
		}
		return ok
	}
	take(broadcast, &h.RxBroadcast, fabric.FieldBroadcast)
	take(multicast, &h.RxMulticast, fabric.FieldMulticast)
	for p := range fabric.Priorities {
		take(firstPFC+2*p, &h.RxPause[p], fabric.FieldPause)
		take(firstPFC+2*p+1, &h.TxPause[p], fabric.FieldPause)
	}
	frames := func(one, other int, to *uint64) bool {
		u, ok := number(at(list, one))
		n, also := number(at(list, other))
		if ok && also {
			*to = u + n
		}
		return ok && also
	}
	received, sent := frames(unicast, nonUnicast, &h.Counters.RxFrames), frames(outUnicast, outNonUnicast, &h.Counters.TxFrames)
	if received && sent {
		h.Valid |= fabric.FieldCounters
	}
	c := &h.Counters
	for i, to := range map[int]*uint64{inOctets: &c.RxBytes, outOctets: &c.TxBytes, inErrors: &c.RxErrors, outErrors: &c.TxErrors,
		inDiscards: &c.RxDrops, outDiscards: &c.TxDrops, outBroadcast: &h.TxBroadcast, outMulticast: &h.TxMulticast} {
		if n, ok := number(at(list, i)); ok {
			*to = n
			if i == outMulticast {
				h.Valid |= fabric.FieldTxCast
			}
		}
	}
}

// perQueue takes what is counted of a queue and of the priority group of its number.
func perQueue(q int, queue, group []value, h *fabric.Health) {
	if n, ok := number(at(queue, 0)); ok {
		h.ECNMarks[q] = n
		h.Valid |= fabric.FieldECN
	}
	if n, ok := number(at(queue, 1)); ok {
		h.QueuePeak[q] = n
		h.Valid |= fabric.FieldBufferPeak
	}
	if n, ok := number(at(group, 0)); ok {
		h.HeadroomPeak[q] = n
		h.Valid |= fabric.FieldBufferPeak
	}
}

// optic takes what is told of a module.
func optic(sensors, info []value, h *fabric.Health) {
	o := fabric.Optic{}
	take := func(i int, unit string, scale float64, to *int, better func(new, old int) bool) {
		v := at(sensors, i)
		f, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(v.text, unit)), 64)
		if !v.ok || err != nil || math.IsNaN(f) || math.Abs(f*scale) > 1e9 { // N/A, or a lane not in use
			return
		}
		if n := int(math.Round(f * scale)); better(n, *to) {
			*to = n
		}
	}
	first := func(int, int) bool { return true }
	take(0, "C", 1000, &o.Temperature, first)
	take(1, "Volts", 1000, &o.Voltage, first)
	o.TxPower = math.MaxInt
	for lane := range 8 {
		take(2+2*lane, "mA", 1000, &o.Bias, func(n, old int) bool { return n > old })
		take(3+2*lane, "dBm", 1000, &o.TxPower, func(n, old int) bool { return n < old && n > fabric.NoLight })
	}
	if o.TxPower == math.MaxInt {
		o.TxPower = fabric.NoLight
	}
	o.Vendor, o.Serial = printable(at(info, 0)), printable(at(info, 1))
	if o != (fabric.Optic{TxPower: fabric.NoLight}) {
		h.Optic = o
		h.Valid |= fabric.FieldOptic
	}
}

// printable is a text of a module.
func printable(v value) string {
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, v.text))
	if text == "N/A" {
		return ""
	}
	return text[:min(len(text), 64)]
}

// watchdog takes what SONiC's PFC watchdog says about a queue.
func watchdog(q int, list []value, h *fabric.Health) {
	status := at(list, 0)
	if !status.ok {
		return
	}
	h.Valid |= fabric.FieldDeadlocks | fabric.FieldVerdict
	drops := at(list, 3).text == watchdogDrops
	if drops {
		h.Guarded |= 1 << q
	}
	if status.text == watchdogStormed {
		h.Deadlocked |= 1 << q
		if drops {
			h.Dropping |= 1 << q
		}
	}
	h.Deadlocks[q], _ = number(at(list, 1))
	if n, ok := number(at(list, 2)); ok {
		h.Restored[q] = n
		h.Valid |= fabric.FieldRestored
	}
}
