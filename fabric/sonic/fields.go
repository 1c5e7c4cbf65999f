package sonic

import (
	"strconv"

	"github.com/openinof/inof/fabric"
)

// Names in COUNTERS_DB are those of the SAI statistics.
var portFields = func() []string {
	f := []string{
		crcErrors:  "SAI_PORT_STAT_ETHER_STATS_CRC_ALIGN_ERRORS",
		inErrors:   "SAI_PORT_STAT_IF_IN_ERRORS",
		unicast:    "SAI_PORT_STAT_IF_IN_UCAST_PKTS",
		nonUnicast: "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS",
		broadcast:  "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS",
		multicast:  "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS",
	}
	for p := range fabric.Priorities {
		f = append(f, "SAI_PORT_STAT_PFC_"+strconv.Itoa(p)+"_RX_PKTS", "SAI_PORT_STAT_PFC_"+strconv.Itoa(p)+"_TX_PKTS")
	}
	return f
}()

// Places in portFields.
const (
	crcErrors = iota
	inErrors
	unicast
	nonUnicast
	broadcast
	multicast
	firstPFC // receive and transmit of each priority
)

// Fields of a queue that SONiC's PFC watchdog keeps.
const (
	watchdogStatus    = "PFC_WD_STATUS"
	watchdogStormed   = "stormed"
	watchdogDeadlocks = "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"
)

// powerFields are the lanes of a module in TRANSCEIVER_DOM_SENSOR.
var powerFields = []string{"rx1power", "rx2power", "rx3power", "rx4power", "rx5power", "rx6power", "rx7power", "rx8power"}

// number reads a total.
func number(v value) (uint64, bool) {
	n, err := strconv.ParseUint(v.text, 10, 64)
	return n, v.ok && err == nil
}

// portCounters takes what the ASIC counts on a port. Images that do not collect CRC
// errors have input errors, which are hardly anything else on a full-duplex link.
func portCounters(list []value, h *fabric.Health) {
	take := func(i int, to *uint64, field fabric.Fields) bool {
		n, ok := number(at(list, i))
		if ok {
			*to = n
			h.Valid |= field
		}
		return ok
	}
	if !take(crcErrors, &h.RxCRC, fabric.FieldCRC) {
		take(inErrors, &h.RxCRC, fabric.FieldCRC)
	}
	take(broadcast, &h.RxBroadcast, fabric.FieldBroadcast)
	take(multicast, &h.RxMulticast, fabric.FieldMulticast)
	for p := range fabric.Priorities {
		take(firstPFC+2*p, &h.RxPause[p], fabric.FieldPause)
		take(firstPFC+2*p+1, &h.TxPause[p], fabric.FieldPause)
	}
	u, ok := number(at(list, unicast))
	n, also := number(at(list, nonUnicast))
	if ok && also {
		h.Counters.RxFrames = u + n
	}
}

// watchdog takes what SONiC's PFC watchdog says about a queue.
func watchdog(q int, list []value, h *fabric.Health) {
	status := at(list, 0)
	if !status.ok {
		return
	}
	h.Valid |= fabric.FieldDeadlocks
	if status.text == watchdogStormed {
		h.Deadlocked |= 1 << q
	}
	h.Deadlocks[q], _ = number(at(list, 1))
}
