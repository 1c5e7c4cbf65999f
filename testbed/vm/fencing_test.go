package vm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/vm"
)

// fencingSetup makes the array, in a network namespace of its own, and its host. The array's agent
// begins before anything is served, so that it knows each connection.
const fencingSetup = `set -e; ip() { /usr/sbin/ip "$@"; }
mkdir -p /run/bin /etc/nvme; cp /lab/bin/snsd /lab/bin/fencingguest /run/bin/
modprobe -a nvmet-tcp nvme-tcp tcp_diag veth nbd
ip netns add array
for i in 1 2; do
	ip link add h$i type veth peer name t$i; ip link set t$i netns array
	ip addr add 10.1.$i.1/24 dev h$i; ip link set h$i up
	ip -n array addr add 10.1.$i.2/24 dev t$i; ip -n array link set t$i up
done
ip -n array link set lo up
umask 077; echo 0123456789abcdef0123456789abcdef >/run/secret
cat >/run/array.yaml <<END
target: {nvmet: true}
connect: {enabled: false}
socket: /run/array.sock
fence-service:
  listen: ["10.1.2.2:4424"]
  hosts: [{key-file: /run/secret, addresses: [10.1.1.1, 10.1.2.1]}]
END
nsenter --net=/run/netns/array /run/bin/snsd run -c /run/array.yaml --existing '' >/lab/node/array.out 2>&1 </dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do [ -S /run/array.sock ] && break; sleep 0.5; done
/run/bin/fencingguest disk /dev/nbd0 >>/run/disk.out 2>&1 </dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(cat /sys/block/nbd0/size)" -gt 0 ] && break; sleep 0.2; done
C=/sys/kernel/config/nvmet N=nqn.2026-01.net.example:array1
mkdir $C/subsystems/$N; echo 1 >$C/subsystems/$N/attr_allow_any_host
mkdir $C/subsystems/$N/namespaces/1; echo -n /dev/nbd0 >$C/subsystems/$N/namespaces/1/device_path; echo 1 >$C/subsystems/$N/namespaces/1/enable
for i in 1 2; do
	mkdir $C/ports/$i; echo tcp >$C/ports/$i/addr_trtype; echo ipv4 >$C/ports/$i/addr_adrfam; echo 10.1.$i.2 >$C/ports/$i/addr_traddr; echo 4420 >$C/ports/$i/addr_trsvcid
	nsenter --net=/run/netns/array ln -s $C/subsystems/$N $C/ports/$i/subsystems/
done
sleep 2 # the agent looks each second at what is served
echo "nqn=$N,transport=tcp,traddr=10.1.1.2,trsvcid=4420,host_traddr=10.1.1.1,hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-1111-1111-1111-111111111111,hostid=11111111-1111-1111-1111-111111111111,keep_alive_tmo=60,reconnect_delay=1,nr_io_queues=1" >/dev/nvme-fabrics
for i in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/nvme0n1 ] && break; sleep 0.5; done
[ -b /dev/nvme0n1 ]
`

// askScript writes, asks for the fence 300 ms later, and prints what the array's disk logged before and
// 2 s after the answer.
const askScript = `: >/run/disk.out
/run/bin/fencingguest write /dev/nvme0n1 %s %d >/dev/null 2>&1 </dev/null &
for i in 1 2 3 4 5 6 7 8 9 10; do grep -q begin /run/disk.out && break; sleep 0.1; done; sleep 0.3
/run/bin/fencingguest ask fence 10.1.1.1 10.1.1.2 10.1.2.1 10.1.2.2 /run/secret; echo "status $?"
echo "state $(cat /sys/class/nvme/nvme0/state)"
sleep 2; cat /run/disk.out
`

// diskLog is what the array's disk and the host that asked saw, on one clock.
type diskLog struct {
	began, ended    []int64
	asked, answered int64
	text            string
}

func readLog(t *testing.T, text string) (l diskLog) {
	t.Helper()
	l.text = text
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		at, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || len(f) < 2 {
			continue
		}
		switch f[1] {
		case "begin":
			l.began = append(l.began, at)
		case "end":
			l.ended = append(l.ended, at)
		case "asked":
			l.asked = at
		case "answered":
			l.answered = at
		}
	}
	if l.asked == 0 || l.answered == 0 || !strings.Contains(text, "status 0") || !strings.Contains(text, "array by target") {
		t.Fatalf("no fence:\n%s", text)
	}
	return l
}

// The array's agent answers only when the last command that the path brought has ended, also one that
// the target's worker still read from the receive queue; what it did not read is never executed; and
// the host is not moved before the answer.
func TestArrayFencesWhatItExecutes(t *testing.T) {
	netnstest.Programs(t, "qemu-system-x86_64")
	image, err := vm.Image()
	netnstest.Require(t, "virtual machines", err)
	bin, dir := t.TempDir(), t.TempDir()
	for name, pkg := range map[string]string{"fencingguest": "./fencingguest", "snsd": "../../cmd/snsd"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	socket, ready, over := filepath.Join(dir, "shell.sock"), make(chan struct{}), make(chan error, 1)
	go func() {
		over <- vm.Run(ctx, vm.Config{Name: "array", Dir: dir, Bin: bin, Image: image, Socket: socket, Memory: 768, CPUs: 1, Ready: func() { close(ready) }})
	}()
	defer func() { cancel(); <-over }()
	select {
	case <-ready:
	case err := <-over:
		over <- err
		t.Fatal(err)
	}
	do := func(script string) string {
		t.Helper()
		r, err := vm.Do(ctx, socket, script)
		if err != nil || r.Status != 0 {
			agent, _ := os.ReadFile(filepath.Join(dir, "share", "array.out"))
			t.Fatalf("%v, status %d\n%s\nthe array's agent:\n%s", err, r.Status, r.Output, agent)
		}
		return string(r.Output)
	}
	do(fencingSetup)

	// With nothing in execution: what the steps take.
	took := do("/run/bin/fencingguest ask fence 10.1.1.1 10.1.1.2 10.1.2.1 10.1.2.2 /run/secret; /run/bin/fencingguest ask confirm 10.1.1.1 10.1.1.2 10.1.2.1 10.1.2.2 /run/secret")
	t.Logf("with nothing in execution: %s%s", took, do("grep fenced: /lab/node/array.out"))
	connected := func() error {
		if s := do("cat /sys/class/nvme/nvme0/state"); s != "live\n" {
			return fmt.Errorf("%q", s)
		}
		return nil
	}
	do("sleep 1") // the array's reset reaches the host only now
	labtest.Eventually(t, "the host to connect anew", connected)

	execution := readLog(t, do(fmt.Sprintf(askScript, "A", 1)))
	if len(execution.ended) != 1 || execution.answered < execution.ended[0] {
		t.Errorf("answered before the command ended:\n%s", execution.text)
	}
	if took := time.Duration(execution.ended[0] - execution.asked); took < time.Second {
		t.Errorf("the command ended %v after the question: nothing was in execution", took)
	}
	if !strings.Contains(execution.text, "state live") {
		t.Errorf("the host was moved before the answer:\n%s", execution.text)
	}
	t.Logf("in execution for %v after the question, answered %v after its end", time.Duration(execution.ended[0]-execution.asked), time.Duration(execution.answered-execution.ended[0]))

	do("/run/bin/fencingguest ask confirm 10.1.1.1 10.1.1.2 10.1.2.1 10.1.2.2 /run/secret")
	labtest.Eventually(t, "the host to connect anew after its confirmation", func() error {
		// The write is sent again by the new connection, which is another one: it is no old copy.
		if s := do("cat /sys/class/nvme/nvme0/state; grep -c end /run/disk.out"); s != "live\n2\n" {
			return fmt.Errorf("%q", s)
		}
		return nil
	})

	const writes = 40
	do("echo 4 >/sys/block/nbd0/queue/nr_requests")
	queue := readLog(t, do(fmt.Sprintf(askScript, "B", writes)))
	for _, at := range queue.ended {
		if at > queue.answered {
			t.Errorf("a command ended %v after the answer", time.Duration(at-queue.answered))
		}
	}
	after := 0
	for _, at := range queue.began {
		if at > queue.asked {
			after++
		}
	}
	if len(queue.began) != len(queue.ended) || after == 0 || len(queue.began) == writes {
		t.Errorf("of %d writes %d were begun, %d of them after the question, and %d ended: the receive queue held nothing, or was not thrown away\n%s", writes, len(queue.began), after, len(queue.ended), queue.text)
	}
	t.Logf("of %d writes %d were executed, %d of them read after the question; none after the answer", writes, len(queue.ended), after)

	// Cross-Controller Reset through the kernel's passthrough, with scripted controllers.
	do(resetSetup)
	text := do("/run/bin/fencingguest reset; cat /run/controllers.out")
	want := "controller 52: opcode 38 CDW10 30007 CDW12 55667788 CDW13 11223344"
	if !strings.Contains(text, want) || !strings.Contains(text, "the log says that the reset is done") || !strings.Contains(text, "answered array by nvme") {
		t.Errorf("no reset, want %q and the log:\n%s", want, text)
	}
}

// resetSetup connects the host's kernel to two scripted controllers.
const resetSetup = `set -e
/run/bin/fencingguest controllers >/run/controllers.out 2>&1 </dev/null &
sleep 0.5
for port in 4451 4452; do
	echo "nqn=nqn.2014-08.org.nvmexpress.discovery,transport=tcp,traddr=127.0.0.1,trsvcid=$port,host_traddr=127.0.0.1,hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-1111-1111-1111-111111111111,hostid=11111111-1111-1111-1111-111111111111,keep_alive_tmo=30" >/dev/nvme-fabrics
done
`
