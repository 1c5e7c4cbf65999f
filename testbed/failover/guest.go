package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/testbed/failover/iolog"
)

// common is what each machine needs.
const common = `set -e
ip() { /usr/sbin/ip "$@"; } # the shell has an ip of its own, which can do less
# In memory as on a disk's page cache: fetched page by page from outside, a program would stand still at every new step.
mkdir /run/bin; cp /lab/bin/snsd /lab/bin/iotime /run/bin/
mkdir -p /etc/nvme
echo 0123456789abcdef0123456789abcdef >/run/secret; chmod 600 /run/secret
echo nqn.2014-08.org.nvmexpress:uuid:6f8ff1a5-5a0e-4d5f-9b5e-000000000001 >/etc/nvme/hostnqn
echo 6f8ff1a5-5a0e-4d5f-9b5e-000000000001 >/etc/nvme/hostid
`

// adminTimeout is how long a host over RDMA lets a command of its own wait, in seconds: a reset of
// a dead path takes as long, and no path is back before. It is what `snsd doctor` proposes; the
// kernel's own is 60.
const adminTimeout = 10

// setupHost gives the host its addresses.
func setupHost(t Transport) string {
	var b strings.Builder
	b.WriteString("modprobe -a nvme-tcp tcp_diag inet_diag\n")
	if t == RDMA {
		fmt.Fprintf(&b, "modprobe -a crc32_generic rdma_rxe nvme-rdma\necho %d >/sys/module/nvme_core/parameters/admin_timeout\n", adminTimeout)
	}
	for p := range tors {
		fmt.Fprintf(&b, "ip addr add %[2]s/24 dev eth%[1]d\nip route add 10.%[1]d.2.0/24 via 10.%[1]d.1.1\n", p+1, hostAddr(p))
		b.WriteString(softRoCE(t, fmt.Sprintf("eth%d", p+1)))
	}
	return b.String()
}

func softRoCE(t Transport, card string) string {
	if t != RDMA {
		return ""
	}
	return fmt.Sprintf("/usr/sbin/rdma link add rxe_%[1]s type rxe netdev %[1]s\n", card)
}

// setupCards sets the addresses of the array, over TCP in a namespace of its own.
func setupCards(t Transport) string {
	var b strings.Builder
	b.WriteString("set -e\n")
	if t == RDMA {
		b.WriteString("modprobe -a crc32_generic rdma_rxe nvmet-rdma\n")
	} else {
		b.WriteString("/usr/sbin/ip netns add tgt; /usr/sbin/ip netns exec tgt ip link set lo up\n")
	}
	for p := range tors {
		_, card, inside := t.at(p)
		if t == TCP {
			fmt.Fprintf(&b, "/usr/sbin/ip link set %s netns tgt\n", card)
		}
		fmt.Fprintf(&b, `%[3]s link set %[4]s up
%[3]s addr add %[2]s/24 dev %[4]s
%[3]s route add 10.%[1]d.1.0/24 via 10.%[1]d.2.1
`, p+1, arrayAddr(p), inside+"/usr/sbin/ip", card)
		b.WriteString(softRoCE(t, card))
	}
	return b.String()
}

// setupArray has it serve.
func setupArray(t Transport) string {
	var b strings.Builder
	fmt.Fprintf(&b, `set -e
modprobe -a nvmet-tcp; modprobe brd rd_nr=1 rd_size=32768
C=/sys/kernel/config/nvmet N=%s
mkdir $C/subsystems/$N
echo 1 >$C/subsystems/$N/attr_allow_any_host
mkdir $C/subsystems/$N/namespaces/1
echo -n /dev/ram0 >$C/subsystems/$N/namespaces/1/device_path
echo 1 >$C/subsystems/$N/namespaces/1/enable
`, Subsystem)
	for p := range tors {
		fmt.Fprintf(&b, `P=$C/ports/%[1]d; mkdir $P
echo %[4]s >$P/addr_trtype; echo ipv4 >$P/addr_adrfam; echo %[2]s >$P/addr_traddr; echo %[3]d >$P/addr_trsvcid
`, p+1, arrayAddr(p), servicePort, t)
		b.WriteString(openPort(t, p))
	}
	return b.String()
}

// openPort and shutPort begin and end the array's listening: the socket lives in the namespace of
// who links.
func openPort(t Transport, plane int) string {
	_, _, inside := t.at(plane)
	return fmt.Sprintf("%sln -s /sys/kernel/config/nvmet/subsystems/%s /sys/kernel/config/nvmet/ports/%d/subsystems/\n", inside, Subsystem, plane+1)
}

func shutPort(plane int) string {
	return fmt.Sprintf("rm /sys/kernel/config/nvmet/ports/%d/subsystems/%s\n", plane+1, Subsystem)
}

// existingConfig is the host's, as the existing agent has it.
func existingConfig(t Transport) string {
	protocol := "tcp"
	if t == RDMA {
		protocol = "roce"
	}
	return fmt.Sprintf("[BASE]\nnr-io-queues = 2 | queue-size = 32\n[SW]\nhost-traddr = %v | protocol = %s\nhost-traddr = %v | protocol = %[2]s\n[DC]\n", hostAddr(0), protocol, hostAddr(1))
}

// hostConfig is what our agent reads besides: times are short so that a test need not wait.
const hostConfig = "register: {interval: 1s, ttl: 4s}\nconnect: {restraint: 1s}\nsocket: /run/snsd/host.sock\nfence-service: {port: 4424, key-file: /run/secret}\n"

// fenceOff is added where the agent leaves a path without waiting for its fence.
const fenceOff = "fence: off\n"

// arrayConfig is of one plane: an array has two controllers, each with its own agent. Over RDMA the
// second one registers no subsystem, so that the host has to ask for it.
func arrayConfig(t Transport, plane int) string {
	_, card, _ := t.at(plane)
	serves := fmt.Sprintf("target: {nvmet: true, interfaces: [%s]}\n", card)
	if t == RDMA && plane == 1 {
		serves = fmt.Sprintf("ports: [{interface: %s, protocol: roce, role: target}]\n", card)
	}
	fences := fmt.Sprintf("fence-service: {listen: [\"%v:4424\"], hosts: [{key-file: /run/secret, addresses: [%v, %v]}]}\n", arrayAddr(plane), hostAddr(0), hostAddr(1))
	return fmt.Sprintf("%s%sregister: {interval: 1s, ttl: 4s}\nconnect: {enabled: false}\nsocket: /run/snsd/array%d.sock\n", serves, fences, plane+1)
}

// disconnect takes all controllers away; their paths must be whole.
const disconnect = `for f in /sys/class/nvme/nvme*/delete_controller; do [ -e $f ] && echo 1 >$f; done; rm -rf /run/nvme; true`

// evenly has both paths used.
const evenly = "for f in /sys/class/nvme-subsystem/nvme-subsys*/iopolicy; do echo round-robin >$f; done\n"

// connect connects what is not connected, with the kernel's own times, and has both paths used.
func connect(t Transport) string {
	var b strings.Builder
	for p := range tors {
		fmt.Fprintf(&b, "grep -qs traddr=%[1]s, /sys/class/nvme/nvme*/address || echo nqn=%[2]s,transport=%[5]s,traddr=%[1]s,trsvcid=%[3]d,host_traddr=%[4]s,nr_io_queues=2,queue_size=32,hostnqn=$(cat /etc/nvme/hostnqn),hostid=$(cat /etc/nvme/hostid),ctrl_loss_tmo=1800 >/dev/nvme-fabrics || exit\n",
			arrayAddr(p), Subsystem, servicePort, hostAddr(p), t)
	}
	b.WriteString(evenly)
	return b.String()
}

// do runs a shell script in the host's machine.
func (b *Bed) do(ctx context.Context, script string) (string, error) {
	return b.doOn(ctx, machine, script)
}

// doAtArray runs a shell script in the array's machine.
func (b *Bed) doAtArray(ctx context.Context, script string) (string, error) {
	node, _, _ := b.over.at(0)
	return b.doOn(ctx, node, script)
}

func (b *Bed) doOn(ctx context.Context, node, script string) (string, error) {
	out, err := b.lab.Exec(ctx, node, "sh", "-c", script)
	return strings.TrimSpace(string(out)), err
}

// share is the directory that the host's machine has as /lab/node.
func (b *Bed) share(name string) string { return b.shareOf(machine, name) }

func (b *Bed) shareOf(node, name string) string {
	return filepath.Join(b.lab.NodeDir(node), "share", name)
}

// start runs a program of the host in the background, its output in a file of the share, and
// gives its process id there.
func (b *Bed) start(ctx context.Context, file, command string) (string, error) {
	return b.startOn(ctx, machine, file, command)
}

func (b *Bed) startOn(ctx context.Context, node, file, command string) (string, error) {
	return b.doOn(ctx, node, fmt.Sprintf("%s >/lab/node/%s 2>&1 </dev/null & echo $!", command, file))
}

// stop ends programs of the host and waits for their end.
func (b *Bed) stop(ctx context.Context, pids ...string) error { return b.stopOn(ctx, machine, pids...) }

func (b *Bed) stopOn(ctx context.Context, node string, pids ...string) error {
	for _, pid := range pids {
		if _, err := b.doOn(ctx, node, fmt.Sprintf("kill %[1]s; i=0; while kill -0 %[1]s 2>/dev/null && [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done; kill -0 %[1]s 2>/dev/null && exit 1; exit 0", pid)); err != nil {
			return err
		}
	}
	return nil
}

// now asks the program that does I/O how it is, and what its clock says more than ours; the
// error of that is at most half of what the answer took.
func (b *Bed) now() (n iolog.Now, ahead, within time.Duration, err error) {
	buf := make([]byte, 1024)
	sent := time.Now()
	question := strconv.FormatInt(sent.UnixNano(), 36)
	if _, err := b.asks.Write([]byte(question)); err != nil {
		return n, 0, 0, err
	}
	if err := b.asks.SetReadDeadline(sent.Add(time.Second)); err != nil {
		return n, 0, 0, err
	}
	var took time.Duration
	for n.Asked != question {
		k, err := b.asks.Read(buf)
		if err != nil {
			return n, 0, 0, err
		}
		took = time.Since(sent)
		n = iolog.Now{}
		if err := json.Unmarshal(buf[:k], &n); err != nil {
			return n, 0, 0, err
		}
	}
	return n, time.Unix(0, n.At).Sub(sent.Add(took / 2)), took / 2, nil
}

// clock tells how far the machine's clock is ahead of ours: the best of some answers.
func (b *Bed) clock() (ahead, within time.Duration, err error) {
	within = time.Hour
	for range 20 {
		_, a, w, aerr := b.now()
		if aerr != nil {
			err = aerr // a machine that is busy loses one now and then
		} else if w < within {
			ahead, within = a, w
		}
	}
	if within < time.Hour {
		err = nil
	}
	return ahead, within, err
}

// readLog waits for what the program that does I/O writes at its end.
func (b *Bed) readLog() (*iolog.Log, error) {
	text, err := os.ReadFile(b.share("io.json"))
	if err != nil {
		return nil, err
	}
	l := new(iolog.Log)
	return l, json.Unmarshal(text, l)
}

// dialIn opens the way to the program that does I/O, over a link that no fault strikes while it is
// asked.
func (b *Bed) dialIn(plane int) error {
	return b.lab.Do(tors[plane], func() error {
		conn, err := net.Dial("udp", net.JoinHostPort(hostAddr(plane).String(), "7"))
		b.asks = conn
		return err
	})
}

var errNotYet = errors.New("not yet")
