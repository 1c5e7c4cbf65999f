package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Config is one machine. It is for a process inside the network namespace that has the
// ports.
type Config struct {
	Name   string   // host name
	Dir    string   // of the node: the machine finds its share/ at /lab/node
	Bin    string   // programs: the machine finds them at /lab/bin, read-only
	Image  string   // what `make vm` made
	Socket string   // where Do is answered
	Ports  []string // interfaces here, each a card of the same name, MAC and MTU there
	Memory int      // MiB
	CPUs   int
	Ready  func() // called once the machine takes commands

	Console io.Writer // of the guest; nil: standard output
}

// Run runs a machine until ctx ends, which is as if its power failed, or it powers
// itself off.
func Run(ctx context.Context, cfg Config) error {
	runtime.LockOSThread() // QEMU dies with the thread that started it
	defer runtime.UnlockOSThread()
	share := filepath.Join(cfg.Dir, "share")
	if err := os.MkdirAll(share, 0o755); err != nil {
		return err
	}
	c := exec.Command(qemu, "-nodefaults", "-no-user-config", "-M", "pc", "-accel", "tcg", "-cpu", "max", "-display", "none", "-no-reboot",
		"-name", cfg.Name, "-m", strconv.Itoa(cfg.Memory), "-smp", strconv.Itoa(cfg.CPUs), "-serial", "stdio",
		"-kernel", filepath.Join(cfg.Image, "vmlinux"), "-initrd", filepath.Join(cfg.Image, "initrd.img"),
		"-virtfs", "local,mount_tag=node,security_model=none,path="+escape(share),
		"-virtfs", "local,mount_tag=bin,security_model=none,readonly=on,path="+escape(cfg.Bin),
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=shell,name=lab.shell")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if cfg.Console != nil {
		c.Stdout, c.Stderr = cfg.Console, cfg.Console
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	line := "console=ttyS0 quiet panic=-1 mitigations=off nokaslr host=" + cfg.Name

	var ours []net.Conn
	defer func() {
		for _, conn := range ours {
			conn.Close()
		}
		for _, f := range c.ExtraFiles {
			f.Close()
		}
	}()
	wire := func() (net.Conn, string, error) {
		conn, theirs, err := socketPair()
		if err != nil {
			return nil, "", err
		}
		ours, c.ExtraFiles = append(ours, conn), append(c.ExtraFiles, theirs)
		return conn, strconv.Itoa(2 + len(c.ExtraFiles)), nil
	}
	control, fd, err := wire()
	if err != nil {
		return err
	}
	c.Args = append(c.Args, "-chardev", "socket,id=qmp,fd="+fd, "-mon", "chardev=qmp,mode=control")
	guest, fd, err := wire()
	if err != nil {
		return err
	}
	c.Args = append(c.Args, "-chardev", "socket,id=shell,fd="+fd)
	var ports []*port
	for i, name := range cfg.Ports {
		conn, fd, err := wire()
		if err != nil {
			return err
		}
		p, err := openPort(name, i, conn)
		if err != nil {
			return err
		}
		defer p.close()
		ports = append(ports, p)
		c.Args = append(c.Args, "-netdev", fmt.Sprintf("stream,id=n%d,addr.type=fd,addr.str=%s", i, fd),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=n%d,id=%s,mac=%s,host_mtu=%d", i, p.device, p.ifi.HardwareAddr, p.ifi.MTU))
		line += " port=" + name
	}
	c.Args = append(c.Args, "-append", line)

	listener, err := listen(cfg.Socket)
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := c.Start(); err != nil {
		return err
	}
	for _, f := range c.ExtraFiles { // so that the end of QEMU is the end of the connections
		f.Close()
	}
	c.ExtraFiles = nil
	failed := make(chan error, 2+2*len(ports))
	run := func(what string, fn func() error) { go func() { failed <- fmt.Errorf("%s: %w", what, fn()) }() }
	for _, p := range ports {
		run("from "+p.ifi.Name, p.fromLink)
		run("to "+p.ifi.Name, p.toLink)
	}
	run("carrier", func() error { return carry(ctx, newQMP(control), ports) })
	run("shell", func() error { return serve(guest, listener, cfg.Ready) })
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	select {
	case err = <-over:
		if err == nil {
			return errors.New("the machine powered itself off")
		}
		return err
	case err = <-failed:
		// QEMU that ends takes its connections with it: its own words say more.
		select {
		case werr := <-over:
			return errors.Join(werr, err)
		case <-time.After(time.Second):
		}
	case <-ctx.Done():
	}
	_ = c.Process.Kill()
	<-over
	return err
}

// escape writes a file name into an option of QEMU, where a comma ends a value.
func escape(file string) string { return strings.ReplaceAll(file, ",", ",,") }

// socketPair gives two ends of a stream, the second for a child.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "socketpair")
	defer f.Close()
	theirs := os.NewFile(uintptr(fds[1]), "socketpair")
	conn, err := net.FileConn(f)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}
