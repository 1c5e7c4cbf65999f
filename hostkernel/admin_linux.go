package hostkernel

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/nvmetcp"
)

// passthru is struct nvme_passthru_cmd (linux/nvme_ioctl.h), 72 bytes.
type passthru struct {
	opcode, flags             uint8
	_                         uint16
	nsid, cdw2, cdw3          uint32
	metadata, addr            uint64
	metadataLen, dataLen      uint32
	cdw10, cdw11, cdw12       uint32
	cdw13, cdw14, cdw15       uint32
	timeout /* ms */, result_ uint32
}

const (
	ioctlAdmin     = 0xC0484E41 // NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_passthru_cmd)
	opcodeGetLog   = 0x02
	opcodeKeepLive = 0x18

	retainEvent = 1 << 15 // RAE of Get Log Page
	logWithin   = 5000    // ms
)

// KeepAlive implements Kernel. When no answer comes in time the kernel takes the path for dead and
// fails its I/O over: block timers make that 1 to 2 s, 7 s when a command of its own was under way.
func (t Tree) KeepAlive(c *Controller, within time.Duration) error {
	return t.admin(c, "keep alive", &passthru{opcode: opcodeKeepLive, timeout: uint32(max(1, within.Milliseconds()))})
}

// admin has a controller do a command.
func (t Tree) admin(c *Controller, what string, cmd *passthru) error {
	name := t.path("dev", c.Name())
	// Without O_NONBLOCK, and not through package os: nothing may wait for the file but this call.
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlAdmin, uintptr(unsafe.Pointer(cmd)))
	runtime.KeepAlive(cmd)
	switch {
	case errno != 0:
		return fmt.Errorf("%s: %s: %w", name, what, errno)
	case status != 0:
		return fmt.Errorf("%s: %s: %w", name, what, StatusError(status))
	}
	return nil
}

// StatusError is the status of a command that a controller refused: DNR, type and code, as in the
// completion without the phase bit.
type StatusError uint16

func (e StatusError) Error() string { return fmt.Sprintf("NVMe status %#x", uint16(e)) }

// AdminCommand is a command to the admin queue of a controller.
type AdminCommand struct {
	Name         string // for errors
	Opcode       uint8
	NSID         uint32
	CDW10, CDW11 uint32
	CDW12, CDW13 uint32
	Data         []byte        // that the controller fills in; may be empty
	Within       time.Duration // then the kernel takes the path for dead
}

// Admin has a controller do a command, and returns dword 0 of its completion. Blocks for as long as
// the path is slow. A refusal wraps a StatusError.
func (t Tree) Admin(c *Controller, a AdminCommand) (result uint32, err error) {
	cmd := &passthru{opcode: a.Opcode, nsid: a.NSID, cdw10: a.CDW10, cdw11: a.CDW11, cdw12: a.CDW12, cdw13: a.CDW13, timeout: uint32(max(1, a.Within.Milliseconds()))}
	if len(a.Data) > 0 {
		var pin runtime.Pinner
		pin.Pin(&a.Data[0])
		defer pin.Unpin()
		cmd.addr, cmd.dataLen = uint64(uintptr(unsafe.Pointer(&a.Data[0]))), uint32(len(a.Data))
	}
	err = t.admin(c, a.Name, cmd)
	return cmd.result_, err
}

// DiscoveryLog implements Kernel.
func (t Tree) DiscoveryLog(c *Controller) (*nvmetcp.Log, error) {
	return nvmetcp.ReadLog(func(page uint8, offset uint64, b []byte, retain bool) error {
		dwords := uint32(len(b)/4 - 1)
		var pin runtime.Pinner
		pin.Pin(&b[0])
		defer pin.Unpin()
		cmd := &passthru{opcode: opcodeGetLog, addr: uint64(uintptr(unsafe.Pointer(&b[0]))), dataLen: uint32(len(b)),
			cdw10: uint32(page) | dwords<<16, cdw11: dwords >> 16, cdw12: uint32(offset), cdw13: uint32(offset >> 32), timeout: logWithin}
		if retain {
			cmd.cdw10 |= retainEvent
		}
		return t.admin(c, "get log page", cmd)
	})
}

// Reset implements Kernel: the write is done by a child, whose thread may be stuck for as long as
// the kernel's admin_timeout.
func (l Linux) Reset(ctx context.Context, c *Controller) error {
	file := l.path(controllersDir, c.Name(), "reset_controller")
	if l.Writer == nil {
		return os.WriteFile(file, []byte("1"), 0)
	}
	if err := l.Writer.Write(ctx, file, "1"); err != nil {
		return fmt.Errorf("reset %s: %w", c.Name(), err)
	}
	return nil
}

// hurried is the delay between attempts to connect again, in seconds.
const hurried = 1

// HurryReconnect implements Kernel. The kernel takes the new delay from the next attempt on: to
// be called before the connection is lost.
func (t Tree) HurryReconnect(c *Controller) (undo func() error, err error) {
	delay, err := t.read(controllersDir, c.Name(), "reconnect_delay")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(delay)
	if err != nil || n <= hurried {
		return func() error { return nil }, nil
	}
	if err := t.setDelay(c, hurried); err != nil {
		return nil, err
	}
	return func() error { return t.setDelay(c, n) }, nil
}

// setDelay sets the delay and leaves ctrl_loss_tmo as it is: the kernel keeps a number of attempts,
// which it works out when ctrl_loss_tmo is written.
func (t Tree) setDelay(c *Controller, seconds int) error {
	loss, err := t.read(controllersDir, c.Name(), "ctrl_loss_tmo")
	if err != nil {
		return err
	}
	if err := t.set(c, "reconnect_delay", strconv.Itoa(seconds)); err != nil {
		return err
	}
	if loss == "off" {
		loss = "-1"
	}
	return t.set(c, "ctrl_loss_tmo", loss)
}
