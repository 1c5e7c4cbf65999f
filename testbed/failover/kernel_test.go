package failover

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// The fake kernel that most tests have and the real one must agree: one table of cases, in
// hostkernel, is held against both.
func TestTheKernelAndTheFakeAgree(t *testing.T) {
	b := up(t, TCP, patient)
	if out, err := exec.Command("go", "test", "-c", "-o", b.share("hostkernel.test"), "../../hostkernel").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx := context.Background()
	out, err := b.do(ctx, disconnect+"; modprobe sch_netem; "+fmt.Sprintf("INOF_KERNEL='%s %s:%d %s eth1' /lab/node/hostkernel.test -test.v -test.run TestTheKernelBehavesLikeTheFake 2>&1",
		Subsystem, arrayAddr(0), servicePort, hostAddr(0)))
	if err != nil || !strings.Contains(out, "--- PASS: TestTheKernelBehavesLikeTheFake") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(out)

	// Over IPv6, by a cable from the host straight to the array.
	out, err = b.do(ctx, fmt.Sprintf(`set -e
ip() { /usr/sbin/ip "$@"; }
modprobe veth
ip link add six type veth peer name six-array netns tgt
ip addr add 2001:db8::1/64 dev six nodad; ip link set six up
ip -n tgt addr add 2001:db8::2/64 dev six-array nodad; ip -n tgt link set six-array up
P=/sys/kernel/config/nvmet/ports/6; mkdir $P
echo tcp >$P/addr_trtype; echo ipv6 >$P/addr_adrfam; echo 2001:db8::2 >$P/addr_traddr; echo %[2]d >$P/addr_trsvcid
nsenter --net=/run/netns/tgt ln -s /sys/kernel/config/nvmet/subsystems/%[1]s $P/subsystems/
INOF_KERNEL='%[1]s [2001:db8::2]:%[2]d 2001:db8::1 six' /lab/node/hostkernel.test -test.v -test.run 'TestTheKernelBehavesLikeTheFake/(a_connection|of_another|without_its)' 2>&1`,
		Subsystem, servicePort))
	if err != nil || strings.Count(out, "    --- PASS: TestTheKernelBehavesLikeTheFake/") != 3 {
		t.Errorf("IPv6: %v\n%s", err, out)
	}
}
