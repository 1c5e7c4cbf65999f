package hostkernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Connect is what a new controller shall be. Numbers that are nil are left to the kernel.
type Connect struct {
	Transport string // tcp or rdma
	NQN       string // of the subsystem, below 223 characters
	Target    netip.AddrPort
	Source    netip.Addr // host_traddr, always given
	Iface     string     // host_iface, tcp only
	HostNQN   string
	HostID    string

	KeepAlive      *int // s
	ReconnectDelay *int // s
	CtrlLoss       *int // s, negative: for ever
	FastIOFail     *int // s
	IOQueues       *int
	WriteQueues    *int
	PollQueues     *int
	QueueSize      *int
	ToS            *int
	IOTimeout      *int     // s, nvme_core.io_timeout while it is made, where that is the kernel's default
	Flags          []string // duplicate_connect, disable_sqflow, hdr_digest, data_digest
}

// maxOptions is how long the kernel lets an option string be: a page.
const maxOptions = 4096

// options gives the string that /dev/nvme-fabrics takes. A value that would end its option is
// refused, so that nothing from the network becomes an option of its own.
func (c *Connect) options() (string, error) {
	if !c.Target.IsValid() || c.Target.Port() == 0 || !c.Source.IsValid() {
		return "", fmt.Errorf("connect: target %v, source %v: want both addresses and a port", c.Target, c.Source)
	}
	if c.Target.Addr().Is4() != c.Source.Is4() {
		return "", fmt.Errorf("connect: target %v and source %v are of two families", c.Target, c.Source)
	}
	var b strings.Builder
	var bad error
	put := func(key, value string) {
		if strings.ContainsAny(value, ",\n\x00") || value == "" {
			bad = fmt.Errorf("connect: %s=%q: want a value without commas and line ends", key, value)
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key + "=" + value)
	}
	put("nqn", c.NQN)
	put("transport", c.Transport)
	put("traddr", c.Target.Addr().String())
	put("trsvcid", strconv.Itoa(int(c.Target.Port())))
	put("host_traddr", c.Source.String())
	if c.Iface != "" {
		if c.Transport == "rdma" {
			return "", errors.New("connect: host_iface is for tcp")
		}
		put("host_iface", c.Iface)
	}
	put("hostnqn", c.HostNQN)
	put("hostid", c.HostID)
	for _, n := range []struct {
		key   string
		value *int
	}{{"keep_alive_tmo", c.KeepAlive}, {"reconnect_delay", c.ReconnectDelay}, {"ctrl_loss_tmo", c.CtrlLoss}, {"fast_io_fail_tmo", c.FastIOFail},
		{"nr_io_queues", c.IOQueues}, {"nr_write_queues", c.WriteQueues}, {"nr_poll_queues", c.PollQueues}, {"queue_size", c.QueueSize}, {"tos", c.ToS}} {
		if n.value != nil {
			put(n.key, strconv.Itoa(*n.value))
		}
	}
	for _, f := range c.Flags {
		if strings.ContainsAny(f, ",=\n\x00") || f == "" {
			return "", fmt.Errorf("connect: flag %q", f)
		}
		b.WriteString("," + f)
	}
	if bad == nil && (len(c.NQN) >= 223 || b.Len() >= maxOptions) {
		bad = fmt.Errorf("connect: %d bytes of options, a subsystem name of %d: at most %d and 222", b.Len(), len(c.NQN), maxOptions-1)
	}
	return b.String(), bad
}

const fabricsDevice = "dev/nvme-fabrics"

// ErrConnected means that the kernel has a controller of exactly this connection already.
var ErrConnected = errors.New("is connected already")

// Connect makes a controller and gives its instance. It blocks until the controller is live or the
// kernel gave up, seconds to minutes, and cannot be interrupted: call it from a goroutine of its
// own.
func (t Tree) Connect(c *Connect) (instance int, err error) {
	options, err := c.options()
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(t.path(fabricsDevice), os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("%w (modprobe nvme-fabrics nvme-%s; root is needed)", err, c.Transport)
	}
	defer f.Close()
	if c.IOTimeout != nil {
		defer t.lengthenIO(*c.IOTimeout)()
	}
	if _, err := f.WriteString(options); err != nil {
		if errors.Is(err, syscall.EALREADY) {
			err = ErrConnected
		}
		return 0, fmt.Errorf("connect %s at %v from %v: %w", c.NQN, c.Target, c.Source, err)
	}
	b := make([]byte, maxOptions)
	n, err := f.Read(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", t.path(fabricsDevice), err)
	}
	return parseInstance(string(b[:n]))
}

// parseInstance reads the kernel's answer `instance=0,cntlid=1`.
func parseInstance(text string) (int, error) {
	for pair := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if value, ok := strings.CutPrefix(pair, "instance="); ok {
			if n, err := strconv.Atoi(value); err == nil && n >= 0 {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("the kernel answers %q to a connect, want instance=N", text)
}

// Options lists the option keys that this kernel knows, empty if it is too old to say: then
// nothing about an option can be told before it is used.
func (t Tree) Options() ([]string, error) {
	f, err := os.OpenFile(t.path(fabricsDevice), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, maxOptions)
	n, err := f.Read(b)
	if errors.Is(err, syscall.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []string
	for pair := range strings.SplitSeq(strings.TrimSpace(string(b[:n])), ",") {
		key, _, _ := strings.Cut(pair, "=")
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Only leaves out the options that a kernel does not know, and gives their keys. A kernel that does
// not say what it knows is taken to know all.
func (c *Connect) Only(known []string) (left []string) {
	if len(known) == 0 {
		return nil
	}
	for key, n := range map[string]**int{"keep_alive_tmo": &c.KeepAlive, "reconnect_delay": &c.ReconnectDelay, "ctrl_loss_tmo": &c.CtrlLoss, "fast_io_fail_tmo": &c.FastIOFail,
		"nr_io_queues": &c.IOQueues, "nr_write_queues": &c.WriteQueues, "nr_poll_queues": &c.PollQueues, "queue_size": &c.QueueSize, "tos": &c.ToS} {
		if *n != nil && !slices.Contains(known, key) {
			*n = nil
			left = append(left, key)
		}
	}
	if c.Iface != "" && !slices.Contains(known, "host_iface") {
		c.Iface = ""
		left = append(left, "host_iface")
	}
	flags := c.Flags
	c.Flags = nil
	for _, f := range flags {
		if slices.Contains(known, f) {
			c.Flags = append(c.Flags, f)
		} else {
			left = append(left, f)
		}
	}
	slices.Sort(left)
	return left
}
