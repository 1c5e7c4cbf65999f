package hostkernel

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// State is what a controller is doing (the file `state`).
type State string

// The states of a controller, as Linux writes them.
const (
	New          State = "new"
	Live         State = "live"
	Resetting    State = "resetting"
	Connecting   State = "connecting"
	Deleting     State = "deleting"
	DeletingNoIO State = "deleting (no IO)"
	Dead         State = "dead"
)

// Controller is one NVMe controller over fabrics.
type Controller struct {
	Instance  int // N of nvmeN
	State     State
	Transport string // tcp, rdma, fc, loop
	NQN       string // of the subsystem
	HostNQN   string
	Discovery bool // a discovery controller: no I/O

	Target netip.AddrPort // traddr and trsvcid
	Source netip.Addr     // host_traddr, or where the kernel says it connects from
	Iface  string         // host_iface, if it was given

	Subsystem int    // M of nvme-subsysM, -1 if unknown
	Owner     string // of the registry, empty: nobody
}

// Name is the kernel's name of the controller.
func (c *Controller) Name() string { return "nvme" + strconv.Itoa(c.Instance) }

// Usable reports whether multipath sends I/O over the controller, or will when it is
// connected again by itself.
func (c *Controller) Usable() bool { return c.State == Live }

// parseAddress reads the file `address`: key=value pairs in any order, separated by commas.
func (c *Controller) parseAddress(text string) error {
	var port uint64
	for pair := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		key, value, _ := strings.Cut(pair, "=")
		var err error
		switch key {
		case "traddr":
			var a netip.Addr
			a, err = netip.ParseAddr(value)
			c.Target = netip.AddrPortFrom(a.Unmap(), c.Target.Port())
		case "trsvcid":
			port, err = strconv.ParseUint(value, 10, 16)
		case "host_traddr", "src_addr":
			if key == "host_traddr" || !c.Source.IsValid() {
				c.Source, err = netip.ParseAddr(value)
				c.Source = c.Source.Unmap()
			}
		case "host_iface":
			if value != "none" {
				c.Iface = value
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pair, err)
		}
	}
	c.Target = netip.AddrPortFrom(c.Target.Addr(), uint16(port))
	return nil
}

// Joins reports whether two controllers, not one, are paths of one disk: to the same subsystem from
// the same host.
func (c *Controller) Joins(o *Controller) bool {
	return c.Instance != o.Instance && c.NQN == o.NQN && c.HostNQN == o.HostNQN && !c.Discovery && !o.Discovery
}
