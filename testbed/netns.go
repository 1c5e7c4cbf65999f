package testbed

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/plainns"
)

// nsfsMagic is the file system type of a mounted namespace (linux/magic.h).
const nsfsMagic = 0x6e736673

// onOwnThread runs fn on a thread of its own that is thrown away afterwards, so
// that fn may change the thread's namespaces without leading other goroutines
// into them. A process started by fn begins in those namespaces.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread must stay as it is: /proc/self describes it, and it
			// can never be thrown away. Hold it and use another one.
			done <- onOwnThread(fn)
			runtime.UnlockOSThread()
			return
		}
		done <- fn() // still locked at the end: the runtime ends the thread
	}()
	return <-done
}

// nsFiles are the places where a node's namespaces are kept.
type nsFiles struct{ net, uts string }

func nsFilesOf(dir, node string) nsFiles {
	return nsFiles{
		net: filepath.Join(dir, "ns", node+".net"),
		uts: filepath.Join(dir, "ns", node+".uts"),
	}
}

// createNS makes a network and a UTS namespace and mounts them on f, so that they
// live without a process.
func createNS(f nsFiles, hostname string) error {
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("new network namespace: %w", err)
		}
		if err := plainns.Set(); err != nil {
			return err
		}
		if err := unix.Sethostname([]byte(hostname)); err != nil {
			return fmt.Errorf("host name %q: %w", hostname, err)
		}
		task := fmt.Sprintf("/proc/self/task/%d/ns/", unix.Gettid())
		for _, m := range []struct{ from, to string }{{task + "net", f.net}, {task + "uts", f.uts}} {
			if err := os.WriteFile(m.to, nil, 0o600); err != nil {
				return err
			}
			if err := unix.Mount(m.from, m.to, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("mount %s: %w", m.to, err)
			}
		}
		return nil
	})
}

// removeNS lets go of what createNS made; missing pieces are fine.
func removeNS(f nsFiles) error {
	var errs []error
	for _, p := range []string{f.net, f.uts} {
		for isNS(p) { // a mount may have been stacked by hand
			if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
				errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
				break
			}
		}
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// isNS reports whether a namespace is mounted at p.
func isNS(p string) bool {
	var st unix.Statfs_t
	return unix.Statfs(p, &st) == nil && st.Type == nsfsMagic
}

// nsInode gives the number that names the namespace mounted at p, 0 if there is none.
func nsInode(p string) uint64 {
	var st unix.Stat_t
	if !isNS(p) || unix.Stat(p, &st) != nil {
		return 0
	}
	return st.Ino
}

// enter moves the calling thread into the namespaces of f.
func (f nsFiles) enter() error {
	for _, n := range []struct {
		path string
		kind int
	}{{f.net, unix.CLONE_NEWNET}, {f.uts, unix.CLONE_NEWUTS}} {
		fd, err := unix.Open(n.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open namespace", Path: n.path, Err: err}
		}
		err = unix.Setns(fd, n.kind)
		unix.Close(fd)
		if err != nil {
			return &os.PathError{Op: "enter namespace", Path: n.path, Err: err}
		}
	}
	return nil
}

// enterWithSys is enter, and gives the thread a mount namespace in which /sys shows
// the node's own devices. That is for the comfort of tools that read
// /sys/class/net; where the kernel forbids it the node sees the machine's /sys.
func (f nsFiles) enterWithSys() error {
	if err := f.enter(); err != nil {
		return err
	}
	if unix.Unshare(unix.CLONE_NEWNS) != nil {
		return nil
	}
	if unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "") != nil {
		return nil
	}
	// The copies of mounted namespaces would keep other labs' nodes alive.
	for _, p := range nsMounts() {
		_ = unix.Unmount(p, unix.MNT_DETACH)
	}
	_ = unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return nil
}

// nsMounts lists where namespaces are mounted in the calling thread's view.
func nsMounts() []string {
	f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/mountinfo", unix.Gettid()))
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 0, 64<<10), 1<<20)
	for sc.Scan() {
		// proc(5): id parent dev root MOUNT-POINT options fields... - FSTYPE source options
		head, tail, ok := strings.Cut(sc.Text(), " - ")
		fields := strings.Fields(head)
		if ok && len(fields) > 4 && strings.HasPrefix(tail, "nsfs ") {
			out = append(out, unescapeMount(fields[4]))
		}
	}
	return out
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// currentNS gives the inode of a process's namespace ("net", "user"), 0 when the
// process is gone or not ours to look at. pid 0 is this process.
func currentNS(pid int, kind string) uint64 {
	who := "self"
	if pid != 0 {
		who = fmt.Sprint(pid)
	}
	var st syscall.Stat_t
	if syscall.Stat("/proc/"+who+"/ns/"+kind, &st) != nil {
		return 0
	}
	return st.Ino
}

// setSysctl writes one net.* setting from inside the namespace.
func setSysctl(key, value string) error {
	p := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
	if err := os.WriteFile(p, []byte(value+"\n"), 0); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", key, value, err)
	}
	return nil
}
