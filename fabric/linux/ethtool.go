package linux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// ethtool asks drivers by ioctl (linux/ethtool.h). A general library needs three
// system calls, a map of all names and a fresh buffer for each reading; here names
// are looked up once, and a reading is one system call into a buffer that is used
// again.
type ethtool struct {
	file *os.File // a reading that hangs keeps the socket open, so that its number is not used again
	raw  syscall.RawConn
	own  []fabric.CounterName
	idle chan *query // with statsBuffer bytes each, not in use
}

// query is what one system call needs; it is used again, so that a reading costs no memory.
type query struct {
	req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	b     []byte // begins with the command; the answer follows it
	errno unix.Errno
	call  func(fd uintptr)
}

func newQuery(b []byte) *query {
	q := &query{b: b}
	q.req.data = unsafe.Pointer(unsafe.SliceData(b))
	q.call = func(fd uintptr) {
		_, _, q.errno = unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&q.req)))
	}
	return q
}

const (
	// maxDriverCounters is the most counters that a driver is believed to have; large
	// NICs with hundreds of queues have some 10,000.
	maxDriverCounters = 32_768
	stringLen         = 32 // ETH_GSTRING_LEN
	statsSet          = 1  // ETH_SS_STATS
	statsHeader       = 8
	// The kernel writes as many counters as the driver has at that moment, however
	// large the buffer is, and queues may be added at any time.
	statsBuffer = statsHeader + 2*8*maxDriverCounters

	drvinfoLen    = 196 // struct ethtool_drvinfo
	drvinfoDriver = 4
	drvinfoStats  = 180
	stringsHeader = 12
	moduleInfoLen = 44 // struct ethtool_modinfo
	eepromHeader  = 16
	settingsLen   = 44 // struct ethtool_cmd
	settingsSpeed = 12

	settingsSpeedHigh = 28
	getModuleInfo     = unix.ETHTOOL_GMODULEINFO
	getModuleBytes    = unix.ETHTOOL_GMODULEEEPROM
)

// newEthtool must be called in the ports' network namespace.
func newEthtool(own []fabric.CounterName) (*ethtool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	e := &ethtool{file: os.NewFile(uintptr(fd), "ethtool"), own: own, idle: make(chan *query, 2)}
	if e.raw, err = e.file.SyscallConn(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *ethtool) close() { _ = e.file.Close() }

// ioctl has the driver of an interface answer in b, which begins with the command.
func (e *ethtool) ioctl(name string, cmd uint32, b []byte) error {
	return e.ask(newQuery(b), name, cmd)
}

func (e *ethtool) ask(q *query, name string, cmd uint32) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface name %q has %d bytes, want at most %d", name, len(name), unix.IFNAMSIZ-1)
	}
	clear(q.req.name[copy(q.req.name[:], name):])
	binary.NativeEndian.PutUint32(q.b, cmd)
	err := e.raw.Control(q.call)
	errno := q.errno
	switch {
	case err != nil:
		return err
	case errno == 0:
		return nil
	case errno == unix.ENODEV:
		return fmt.Errorf("%w (%w)", fabric.ErrNoPort, errno)
	}
	return errno
}

// errNotTold is that a driver, or a port without module, does not have what was
// asked for.
var errNotTold = errors.New("the driver does not tell")

// notTold recognizes how drivers say so.
func notTold(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL)
}

// layout asks a driver for its name and those of its counters.
func (e *ethtool) layout(name string) (*layout, error) {
	info := make([]byte, drvinfoLen)
	if err := e.ioctl(name, unix.ETHTOOL_GDRVINFO, info); err != nil {
		if notTold(err) {
			return newLayout("", nil, nil), nil
		}
		return nil, fmt.Errorf("driver information: %w", err)
	}
	driver := text(info[drvinfoDriver : drvinfoDriver+stringLen])
	n := binary.NativeEndian.Uint32(info[drvinfoStats:])
	if n == 0 || n > maxDriverCounters {
		return newLayout(driver, nil, nil), nil
	}
	b := make([]byte, stringsHeader+2*stringLen*int(n)) // twice: see statsBuffer
	binary.NativeEndian.PutUint32(b[4:], statsSet)
	binary.NativeEndian.PutUint32(b[8:], n)
	if err := e.ioctl(name, unix.ETHTOOL_GSTRINGS, b); err != nil {
		if notTold(err) {
			return newLayout(driver, nil, nil), nil
		}
		return nil, fmt.Errorf("names of driver counters: %w", err)
	}
	return newLayout(driver, parseStrings(b), e.own), nil
}

// parseStrings reads a struct ethtool_gstrings; names are padded with zeros, and by
// some drivers with spaces before them.
func parseStrings(b []byte) []string {
	if len(b) < stringsHeader {
		return nil
	}
	n := min(int(binary.NativeEndian.Uint32(b[8:])), maxDriverCounters, (len(b)-stringsHeader)/stringLen)
	names := make([]string, n)
	for i := range names {
		names[i] = text(b[stringsHeader+i*stringLen:][:stringLen])
	}
	return names
}

// text is a string of fixed length without its padding.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(bytes.TrimRight(b, " "))
}

// stats reads all counters of a driver and hands them to use; they are gone after
// that. It gives how many there are.
func (e *ethtool) stats(name string, n int, use func([]uint64)) (int, error) {
	var q *query
	select {
	case q = <-e.idle:
	default:
		q = newQuery(make([]byte, statsBuffer))
	}
	defer func() {
		select {
		case e.idle <- q:
		default:
		}
	}()
	binary.NativeEndian.PutUint32(q.b[4:], uint32(n))
	if err := e.ask(q, name, unix.ETHTOOL_GSTATS); err != nil {
		return 0, fmt.Errorf("driver counters: %w", err)
	}
	got := int(binary.NativeEndian.Uint32(q.b[4:]))
	if got != n {
		return got, nil
	}
	use(unsafe.Slice((*uint64)(unsafe.Pointer(&q.b[statsHeader])), n))
	return got, nil
}

// module reads some bytes of the EEPROM of a port's module.
func (e *ethtool) module(name string, offset, n int) ([]byte, error) {
	b := make([]byte, eepromHeader+n)
	binary.NativeEndian.PutUint32(b[8:], uint32(offset))
	binary.NativeEndian.PutUint32(b[12:], uint32(n))
	if err := e.ioctl(name, getModuleBytes, b); err != nil {
		return nil, fmt.Errorf("module EEPROM, %d bytes at %d: %w", n, offset, err)
	}
	return b[eepromHeader:], nil
}

// eeprom gives the kind of a port's module, the size of its EEPROM and what reads that.
func (e *ethtool) eeprom(name string) (kind uint32, size int, read func(offset, n int) ([]byte, error), err error) {
	info := make([]byte, moduleInfoLen)
	if err := e.ioctl(name, getModuleInfo, info); err != nil {
		return 0, 0, nil, fmt.Errorf("module information: %w", err)
	}
	kind, size = binary.NativeEndian.Uint32(info[4:]), int(min(binary.NativeEndian.Uint32(info[8:]), maxEEPROM))
	return kind, size, func(offset, n int) ([]byte, error) { return e.module(name, offset, n) }, nil
}

// speed is that of the link in Mbit/s, 0 where it is not known (ETHTOOL_GSET, struct ethtool_cmd).
func (e *ethtool) speed(name string) (uint64, error) {
	b := make([]byte, settingsLen)
	if err := e.ioctl(name, unix.ETHTOOL_GSET, b); err != nil {
		return 0, fmt.Errorf("link settings: %w", err)
	}
	speed := uint32(binary.NativeEndian.Uint16(b[settingsSpeed:])) | uint32(binary.NativeEndian.Uint16(b[settingsSpeedHigh:]))<<16
	if speed == math.MaxUint32 || speed == math.MaxUint16 { // SPEED_UNKNOWN, of all and of old drivers
		return 0, nil
	}
	return uint64(speed), nil
}
