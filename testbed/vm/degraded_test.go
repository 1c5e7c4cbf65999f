package vm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const lonelyLab = `
name: lonely
topology:
  nodes:
    i1: {kind: vm}
    p: {kind: linux}
  links:
    - endpoints: ["i1:eth1", "p:eth1"]
`

// twoPaths makes an array in a namespace of the machine, with two paths to it, and a function that
// does I/O for a second, longer where that gives few, and says which share of it took the first path,
// in percent, and how many I/Os there were.
const twoPaths = `set -e
ip() { /usr/sbin/ip "$@"; }
modprobe -a nvme-tcp nvmet-tcp veth sch_netem; modprobe brd rd_nr=1 rd_size=32768
mkdir -p /etc/nvme; echo nqn.h >/etc/nvme/hostnqn; echo 6f8ff1a5-5a0e-4d5f-9b5e-000000000001 >/etc/nvme/hostid
ip netns add tgt
C=/sys/kernel/config/nvmet N=nqn.2026-01.net.example:array1
mkdir $C/subsystems/$N; echo 1 >$C/subsystems/$N/attr_allow_any_host
mkdir $C/subsystems/$N/namespaces/1; echo -n /dev/ram0 >$C/subsystems/$N/namespaces/1/device_path; echo 1 >$C/subsystems/$N/namespaces/1/enable
for i in 1 2; do
	ip link add h$i type veth peer name t$i; ip link set t$i netns tgt
	ip addr add 10.1.$i.1/24 dev h$i; ip link set h$i up
	ip netns exec tgt /usr/sbin/ip addr add 10.1.$i.2/24 dev t$i; ip netns exec tgt /usr/sbin/ip link set t$i up
	p=$C/ports/$i; mkdir $p
	echo tcp >$p/addr_trtype; echo ipv4 >$p/addr_adrfam; echo 10.1.$i.2 >$p/addr_traddr; echo 4420 >$p/addr_trsvcid
	nsenter --net=/run/netns/tgt ln -s $C/subsystems/$N $p/subsystems/
done
cat >/run/tools <<'END'
C=/sys/kernel/config/nvmet N=nqn.2026-01.net.example:array1
connect() { echo "nqn=$N,transport=tcp,traddr=10.1.$1.2,trsvcid=4420,host_traddr=10.1.$1.1,hostnqn=nqn.h,hostid=6f8ff1a5-5a0e-4d5f-9b5e-000000000001" >/dev/nvme-fabrics; }
of() { for c in /sys/class/nvme/nvme*; do grep -q "traddr=10.1.$1.2," $c/address && echo ${c##*/nvme}; done; }
policy() { echo $1 >/sys/class/nvme-subsystem/nvme-subsys0/iopolicy; }
done_by() { cat /sys/block/nvme*c$(of $1)n1/stat | { read a _ _ _ b _; echo $((a + b)); }; }
share() {
	a=$(done_by 1) b=$(done_by 2)
	/lab/bin/iotime -device /dev/nvme0n1 -pause 1ms -answer 127.0.0.1:7 -out /run/io.json &
	for i in $(seq 60); do
		sleep 1
		x=$(($(done_by 1) - a)) y=$(($(done_by 2) - b))
		if [ $((x + y)) -ge 40 ]; then break; fi
	done
	kill $!; wait $! || true
	echo $((100 * x / (x + y))) $((x + y))
}
live() {
	for i in $(seq 60); do
		if [ "$(cat /sys/class/nvme/nvme*/state | uniq)" = live ]; then break; fi
		sleep 1
	done
	sleep 1
}
END
. /run/tools
connect 1; connect 2; live
/usr/sbin/tc qdisc add dev h1 root netem delay 20ms`

// What takes I/O off a path that is slow or loses packets, but works, on the kernel of Debian 13
// (docs/hosts.md).
func TestWhatMovesIOOffADegradedPath(t *testing.T) {
	f := up(t, lonelyLab)
	if out, err := exec.Command("go", "build", "-o", filepath.Join(suite.Programs(t), "iotime"), "../failover/iotime").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	defer func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(f.NodeDir("i1"), "log", "vm.log"))
			t.Logf("%s", b)
		}
	}()
	f.in(twoPaths)
	for _, c := range []struct {
		what, script string
		lo, hi       int // percent over the degraded path
	}{
		{"round-robin", "policy round-robin", 30, 70},
		// The path that was found first stays the one, whatever it is like.
		{"numa, the degraded path being the older one", "policy numa; echo 1 >/sys/class/nvme/nvme$(of 2)/reset_controller; live", 95, 100},
		{"numa, the degraded path reset", "echo 1 >/sys/class/nvme/nvme$(of 1)/reset_controller; live", 95, 100},
		{"numa, the degraded path connected anew", "echo 1 >/sys/class/nvme/nvme$(of 1)/delete_controller; connect 1; live", 0, 5},
		{"round-robin again", "policy round-robin", 30, 70},
		{"round-robin, the target calling it non-optimized", "echo non-optimized >$C/ports/1/ana_groups/1/ana_state; sleep 1", 0, 5},
		{"numa, the target calling the other one non-optimized", "policy numa; echo non-optimized >$C/ports/2/ana_groups/1/ana_state; echo optimized >$C/ports/1/ana_groups/1/ana_state; sleep 1", 95, 100},
	} {
		var share, count int
		if out := f.in(". /run/tools; { " + c.script + "; } >/dev/null; share"); !strings.Contains(out, " ") {
			t.Fatalf("%s: %s", c.what, out)
		} else if _, err := fmt.Sscanf(out[strings.LastIndexByte(out, '\n')+1:], "%d %d", &share, &count); err != nil {
			t.Fatalf("%s: %v: %s", c.what, err, out)
		}
		t.Logf("%-55s %3d %% of %4d I/Os over the degraded path", c.what, share, count)
		if share < c.lo || share > c.hi {
			t.Errorf("%s: %d %% over the degraded path, want %d..%d", c.what, share, c.lo, c.hi)
		}
	}
	if out, err := f.Exec(t.Context(), "i1", "sh", "-c", ". /run/tools; policy queue-depth"); err == nil {
		t.Logf("this kernel has queue-depth: %s", out)
	}
}
