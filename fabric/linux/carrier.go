package linux

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Carrier polling. linkwatch (net/core/link_watch.c) sends a notification at once
// only when the event is urgent, which the loss of carrier of a physical interface
// is not, or when no event of any interface in any namespace was sent within the
// last second. Otherwise it waits for that second to pass. The driver's own carrier
// bit and its change count move at once.
//
// Of the ways to read them (6.18, 128 veth ports, one core), sysfs carrier_changes
// costs 0.6 us a port, takes no lock, and also shows a flap that ended between two
// looks; ETHTOOL_GLINK costs 0.65 us but waits for the RTNL lock (since 6.8
// it also makes the kernel send what it holds back); sysfs carrier
// takes that lock too and costs 0.9 us; a link dump costs 7 us a port; SIOCGIFFLAGS
// does not show the bit. So the first is used, from a sysfs instance of the ports'
// namespace, and the second where mounting that is not permitted.

const (
	// pollShare bounds the poller to 1/110 of a core: the interval grows with what a
	// round costs, which is more than in a tight loop because the caches are cold.
	// alertShare is the same during an alert.
	pollShare, alertShare = 110, 10
	// wakeCost is what being woken by a timer costs besides the round itself: 60 to
	// 120 us in a virtual machine, where it includes leaving the idle state; less on
	// bare metal.
	wakeCost = 100 * time.Microsecond
	// alertInterval is the shortest interval during an alert, which is the time
	// after a change of any port in which the kernel holds other changes back.
	alertInterval = time.Millisecond
	alertTime     = 1100 * time.Millisecond
	// costWeight is the weight of the old value in the moving average of a round.
	costWeight = 7
)

// carrierProbe reads a value that differs when a port's carrier changed.
type carrierProbe interface {
	open(name string) (portProbe, error)
	close()
	String() string
}

type portProbe interface {
	read() (probeValue, error)
	close()
}

type probeValue [24]byte

// openProbe must be called in the ports' network namespace. With sysfs the better
// way is tried first.
func openProbe(sysfs bool) (carrierProbe, error) {
	if sysfs {
		if p, err := openSysfs(); err == nil {
			return p, nil
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket for carrier: %w", err)
	}
	return &ethtoolProbe{fd: fd}, nil
}

// sysfsProbe is a sysfs of the right namespace that is mounted nowhere: what
// /sys shows may belong to another one.
type sysfsProbe struct{ root int }

func openSysfs() (*sysfsProbe, error) {
	ctx, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(ctx)
	if err := unix.FsconfigCreate(ctx); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	root, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	return &sysfsProbe{root: root}, nil
}

func (p *sysfsProbe) open(name string) (portProbe, error) {
	fd, err := unix.Openat(p.root, "class/net/"+name+"/carrier_changes", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open carrier_changes of %q: %w", name, err)
	}
	return &sysfsPort{fd: fd}, nil
}

func (p *sysfsProbe) close()         { _ = unix.Close(p.root) }
func (p *sysfsProbe) String() string { return "sysfs" }

type sysfsPort struct{ fd int }

// read goes past the Go scheduler, because it never waits and is done so often: being
// told of each system call costs more than the call.
func (p *sysfsPort) read() (v probeValue, err error) {
	_, _, e := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(p.fd), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0, 0, 0)
	if e != 0 {
		return v, e
	}
	return v, nil
}

func (p *sysfsPort) close() { _ = unix.Close(p.fd) }

// ethtoolProbe asks by ioctl ETHTOOL_GLINK.
type ethtoolProbe struct{ fd int }

func (p *ethtoolProbe) open(name string) (portProbe, error) {
	if len(name) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("interface name %q has %d bytes, want at most %d", name, len(name), unix.IFNAMSIZ-1)
	}
	q := &ethtoolPort{fd: p.fd}
	copy(q.req.name[:], name)
	return q, nil
}

func (p *ethtoolProbe) close()         { _ = unix.Close(p.fd) }
func (p *ethtoolProbe) String() string { return "ethtool" }

// ethtoolPort holds a struct ifreq (40 bytes on 64-bit machines) whose data pointer
// leads to a struct ethtool_value.
type ethtoolPort struct {
	fd  int
	req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	value struct{ cmd, data uint32 }
}

func (p *ethtoolPort) read() (v probeValue, err error) {
	p.value.cmd, p.value.data = unix.ETHTOOL_GLINK, 0
	p.req.data = unsafe.Pointer(&p.value)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(p.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&p.req)))
	if e != 0 {
		return v, e
	}
	v[0] = byte(p.value.data)
	return v, nil
}

func (p *ethtoolPort) close() {}

// poller holds the probes of all ports. The link reader adds and removes, one
// goroutine polls.
type poller struct {
	probe carrierProbe

	mu    sync.Mutex
	ports map[int]*polled
	order []*polled
}

type polled struct {
	index int
	probe portProbe
	last  probeValue
	dead  bool
}

func newPoller(probe carrierProbe) *poller {
	return &poller{probe: probe, ports: make(map[int]*polled)}
}

// add starts watching a port. The first value is read here, before the caller asks
// for the state once more, so no change falls between the two.
func (p *poller) add(index int, name string) error {
	pp, err := p.probe.open(name)
	if err != nil {
		return err
	}
	q := &polled{index: index, probe: pp}
	q.last, err = pp.read()
	if err != nil {
		pp.close()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports[index] = q
	p.order = append(p.order, q)
	return nil
}

func (p *poller) remove(index int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.ports[index]
	if q == nil {
		return
	}
	delete(p.ports, index)
	for i := range p.order {
		if p.order[i] == q {
			p.order = append(p.order[:i], p.order[i+1:]...)
			break
		}
	}
	q.probe.close()
}

// round looks at all ports once and calls changed for each that differs.
func (p *poller) round(changed func(index int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.order {
		if q.dead {
			continue
		}
		v, err := q.probe.read()
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENODEV):
			q.dead = true // the notification that it is gone is on its way
			changed(q.index)
		case err != nil:
			// Anything else is as good as a change: the question will tell.
			changed(q.index)
		case !bytes.Equal(v[:], q.last[:]):
			q.last = v
			changed(q.index)
		}
	}
}

// changes reads how often the carrier of a port changed; false when its probe does not
// tell.
func (p *poller) changes(index int) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.ports[index]
	if q == nil || q.dead {
		return 0, false
	}
	s, ok := q.probe.(*sysfsPort)
	if !ok {
		return 0, false
	}
	v, err := s.read()
	if err != nil {
		return 0, false
	}
	n, digits := uint64(0), 0
	for ; digits < len(v) && v[digits] >= '0' && v[digits] <= '9'; digits++ {
		n = n*10 + uint64(v[digits]-'0')
	}
	return n, digits > 0
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.order {
		q.probe.close()
	}
	p.order, p.ports = nil, nil
	p.probe.close()
}

// pollInterval is how long to wait until the next round, after rounds that took cost
// on average.
func pollInterval(base, cost time.Duration, alert bool) time.Duration {
	calm := max(base, pollShare*(cost+wakeCost))
	if alert {
		return min(max(alertInterval, alertShare*cost), calm)
	}
	return calm
}
