package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// path is one controller of the host.
type path struct {
	name, state string
	id          int // of the controller at the array
	writes      int // over this path
}

func text(file string) string {
	b, _ := os.ReadFile(file)
	return strings.TrimSpace(string(b))
}

// paths returns the host's controllers by plane, 1 and 2.
func paths() [3]*path {
	var out [3]*path
	dirs, _ := filepath.Glob("/sys/class/nvme/nvme*")
	for _, dir := range dirs {
		for p := 1; p <= 2; p++ {
			if !strings.Contains(text(dir+"/address")+",", "traddr="+targetAddress(p)+",") || text(dir+"/subsysnqn") != subsystem {
				continue
			}
			c := &path{name: filepath.Base(dir), state: text(dir + "/state")}
			c.id, _ = strconv.Atoi(text(dir + "/cntlid"))
			stats, _ := filepath.Glob(dir + "/nvme*c*n1/stat")
			if len(stats) == 1 {
				if f := strings.Fields(text(stats[0])); len(f) > 4 {
					c.writes, _ = strconv.Atoi(f[4])
				}
			}
			out[p] = c
		}
	}
	return out
}

func bothLive() error {
	for p, c := range paths() {
		if p == 0 {
			continue
		}
		if c == nil || c.state != "live" {
			return fmt.Errorf("plane %d: %+v", p, c)
		}
	}
	if names, _ := filepath.Glob("/dev/nvme*n1"); len(names) != 1 {
		return fmt.Errorf("disks: %v", names)
	}
	return nil
}

// connect connects both paths anew, that of plane 1 first.
func connect(kato time.Duration) error {
	if err := disconnect(); err != nil {
		return err
	}
	for p := 1; p <= 2; p++ {
		options := fmt.Sprintf("nqn=%s,transport=tcp,traddr=%s,trsvcid=%d,host_traddr=%s,hostnqn=%s,hostid=%s,nr_io_queues=1,keep_alive_tmo=%d,reconnect_delay=10",
			subsystem, targetAddress(p), servicePort, hostAddress(p), hostNQN, hostID, int(kato.Seconds()))
		f, err := os.OpenFile("/dev/nvme-fabrics", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(options)
		f.Close()
		if err != nil {
			return fmt.Errorf("connect %s: %w", targetAddress(p), err)
		}
		if p == 1 { // so that the disk has its first path when the second one comes
			if err := await(30*time.Second, "the disk", func() error {
				if names, _ := filepath.Glob("/dev/nvme*n1"); len(names) == 0 {
					return os.ErrNotExist
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return await(30*time.Second, "both paths live", bothLive)
}

func disconnect() error {
	for _, c := range paths() {
		if c != nil {
			_ = put("/sys/class/nvme/"+c.name+"/delete_controller", "1")
		}
	}
	return await(60*time.Second, "no controller", func() error {
		if names, _ := filepath.Glob("/dev/nvme*n1"); len(names) > 0 || paths() != [3]*path{} {
			return fmt.Errorf("%v", names)
		}
		return nil
	})
}

// probe writes a block and returns the plane over which it went.
func probe(device, tag string) (int, error) {
	before := paths()
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_DIRECT, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf, err := aligned()
	if err != nil {
		return 0, err
	}
	copy(buf, tag)
	if _, err := unix.Pwrite(fd, buf, 0); err != nil {
		return 0, err
	}
	plane := 0
	return plane, await(2*time.Second, "the path that carried the write", func() error { // the kernel counts it after its end
		after := paths()
		for p := 1; p <= 2; p++ {
			if before[p] != nil && after[p] != nil && after[p].writes > before[p].writes {
				plane = p
				return nil
			}
		}
		return fmt.Errorf("%+v %+v", after[1], after[2])
	})
}
