package wire

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Downs are hosts of which is to be said whether they are down, the latest of each.
type Downs map[zone.HostKey]zone.Down

// Records gives one record for all hosts of a port that are down alike, in an order that
// depends on nothing but what is said.
func (d Downs) Records() (out []DownRecord) {
	type alike struct {
		device netip.Addr
		port   string
		why    snsd.Reason
		since  int64
	}
	at := make(map[alike]int, 1)
	var last alike
	n := -1
	for k, is := range d { // a port at a time is sorted, not all hosts: they are many, ports few
		a := alike{k.Device, k.Port, is.Why, is.Since.UnixNano()}
		if n < 0 || a != last {
			i, seen := at[a]
			if !seen {
				i = len(out)
				at[a] = i
				out = append(out, DownRecord{Device: k.Device, Port: k.Port, Down: is})
			}
			last, n = a, i
		}
		out[n].Addrs = append(out[n].Addrs, k.Addr)
	}
	slices.SortFunc(out, func(a, b DownRecord) int {
		return cmp.Or(a.Device.Compare(b.Device), strings.Compare(a.Port, b.Port), cmp.Compare(a.Why, b.Why), a.Since.Compare(b.Since))
	})
	for i := 0; i < len(out); i++ {
		addrs := out[i].Addrs
		slices.SortFunc(addrs, netip.Addr.Compare)
		if len(addrs) > MaxDownAddrs {
			rest := out[i]
			out[i].Addrs, rest.Addrs = addrs[:MaxDownAddrs:MaxDownAddrs], addrs[MaxDownAddrs:]
			out = slices.Insert(out, i+1, rest)
		}
	}
	return out
}

// Key is that of one of its hosts.
func (r *DownRecord) Key(addr netip.Addr) zone.HostKey {
	return zone.HostKey{Addr: addr, Device: r.Device, Port: r.Port}
}

// Op is Put of hosts that are down and Withdraw of hosts that are no more, for people.
func (r *DownRecord) Op() Op {
	if r.Is() {
		return Put
	}
	return Withdraw
}

func (d *DownRecord) append(b []byte) ([]byte, error) {
	if err := CheckAddr("Update.down.device", d.Device); err != nil {
		return nil, err
	}
	if err := checkText("Update.down.port", d.Port, 1, fabric.MaxPortName); err != nil {
		return nil, err
	}
	if len(d.Addrs) > MaxDownAddrs {
		return nil, &LimitError{What: "addresses", Key: "hosts down at port " + d.Port, Limit: MaxDownAddrs}
	}
	b, at := beginTLV(b, tlvUpdateDown)
	b = appendText(appendAddr(appendDown(b, d.Down), d.Device), d.Port)
	for _, a := range d.Addrs {
		if err := CheckAddr("Update.down.address", a); err != nil {
			return nil, err
		}
		b = appendAddr(b, a)
	}
	return endTLV(b, at), nil
}

func decodeDownRecord(r *reader) DownRecord {
	d := DownRecord{Down: decodeDown(r, "down"), Device: r.addr("down.device"), Port: r.portName("down.port")}
	if n := len(r.b); n > 0 {
		size := addrSize
		if r.b[0] == 4 { // as most of the others will be
			size = 5
		}
		d.Addrs = make([]netip.Addr, 0, min(n/size, MaxDownAddrs))
	}
	for r.err == nil && len(r.b) > 0 {
		if len(d.Addrs) == MaxDownAddrs {
			r.fail("down.addresses", "more than %d", MaxDownAddrs)
			break
		}
		d.Addrs = append(d.Addrs, r.addr("down.address"))
	}
	return d
}

// appendDown writes reason and time; both are 0 of a host that is not down.
func appendDown(b []byte, d zone.Down) []byte {
	if !d.Is() {
		d = zone.Down{}
	}
	return appendTime(append(b, byte(d.Why)), d.Since)
}

func decodeDown(r *reader, field string) zone.Down {
	d := zone.Down{Why: snsd.Reason(r.u8(field)), Since: r.time(field)}
	if !d.Is() {
		return zone.Down{}
	}
	return d
}

// DownRecord says of hosts at one port of a device that they cannot be reached by a fault, or
// with the zero Down that they can again. A receiver that does not know a host passes it over:
// it is put with its state. So a fault of a port is one short record, however many hosts it has.
type DownRecord struct {
	Device netip.Addr
	Port   string
	zone.Down
	Addrs []netip.Addr // at most MaxDownAddrs
}

// Size is the length of the record on the wire, in bytes, or a little more.
func (d *DownRecord) Size() int {
	n := tlvHeaderLen + 10 + AddrLen(d.Device) + len(d.Port)
	for _, a := range d.Addrs {
		n += AddrLen(a)
	}
	return n
}

// downAddrs is how many addresses of a DownRecord weigh as much as a record.
const downAddrs = 4

// weight is how much work the record is, in records.
func (d *DownRecord) weight() int { return 1 + len(d.Addrs)/downAddrs }

func (d *DownRecord) goes() bool        { return d.Is() }
func (d *DownRecord) key() zone.HostKey { return zone.HostKey{Device: d.Device, Port: d.Port} }
