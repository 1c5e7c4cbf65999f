package vm_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The filters of hard zoning and the port guard load and work on the kernel of Debian 13, Linux 6.12,
// as on the one here: the same tests.
func TestHardZoningWorksOnThisKernel(t *testing.T) {
	worksHere(t, "zonefilter", "-rapid.checks=10 -rapid.nofailfile -test.run 'EachPlace|NextBest|NextProcess|Rights|NoBTF|TheProgramDoesWhatTheRuleSays/(native|tc)apartpairs'")
}

func TestThePortGuardWorksOnThisKernel(t *testing.T) {
	worksHere(t, "portguard", "-test.run 'Forged|ForwardsLinkLocal|Itself|Pair|PortIsBlocked|ByTime|Outlive|Confirmed'")
}

// worksHere runs tests of a package below fabric/linux in a virtual machine.
func worksHere(t *testing.T, pkg, flags string) {
	f := up(t, lonelyLab)
	if out, err := exec.Command("go", "test", "-c", "-o", filepath.Join(suite.Programs(t), pkg+".test"), "../../fabric/linux/"+pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := f.in(fmt.Sprintf(`modprobe -a veth bridge cls_bpf sch_ingress sch_tbf; mount -t bpf bpf /sys/fs/bpf; mkdir -p /run/netns /run/bpf; uname -r; cd /tmp
INOF_REQUIRE_NETNS=1 /lab/bin/%s.test -test.v %s 2>&1 || echo FAILED`, pkg, flags))
	t.Log(out)
	if regexp.MustCompile(`(?m)^\s*--- (FAIL|SKIP)|^FAILED`).MatchString(out) || !regexp.MustCompile(`(?m)^PASS`).MatchString(out) {
		t.Error("not all of it works on this kernel")
	}
	if !regexp.MustCompile(`^6\.12\.`).MatchString(out) {
		t.Errorf("this is another kernel than docs/operations.md names")
	}
}
