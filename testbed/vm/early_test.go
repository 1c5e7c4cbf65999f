package vm_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aloneLab has a machine and nothing else.
const aloneLab = `
name: early
topology:
  nodes:
    sw: {kind: inof-switch, startup-config: sw.yaml}
    i1: {kind: vm}
  links:
    - endpoints: ["sw:eth1", "i1:eth1"]
`

// On Debian's kernel, the oldest that is tried, the loss of carrier is heard by fentry and by a
// kprobe; the tests of package fabric/linux say so in the machine itself.
func TestALossIsHeardEarlyOnDebiansKernel(t *testing.T) {
	f := up(t, aloneLab)
	program := filepath.Join(f.NodeDir("i1"), "share", "linux.test")
	if out, err := exec.Command("go", "test", "-c", "-o", program, "github.com/openinof/inof/fabric/linux").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out := f.in("modprobe veth; cd /tmp && /lab/node/linux.test -test.v -test.run 'TestALossIsHeardEarlyOnARealLink|TestFlapsOnARealLinkEndAsItIs' 2>&1; true")
	t.Logf("Linux %s:\n%s", f.in("uname -r"), out)
	for _, how := range []string{"fentry", "kprobe"} {
		if !strings.Contains(out, "--- PASS: TestALossIsHeardEarlyOnARealLink/"+how) {
			t.Errorf("a loss is not heard by %s", how)
		}
	}
	if !strings.Contains(out, "\nPASS") {
		t.Error("the tests failed in the machine")
	}
}
