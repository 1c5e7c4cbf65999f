package failover

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// The fake kernel that most tests have and the real one must agree: one table of cases, in hostkernel, is held against
// both.
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
}
