package vm_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The filters of hard zoning load and work on the kernel of Debian 12, Linux 6.1, as on the one
// here: the same tests.
func TestHardZoningWorksOnThisKernel(t *testing.T) {
	f := up(t, lonelyLab)
	if out, err := exec.Command("go", "test", "-c", "-o", filepath.Join(suite.Programs(t), "zonefilter.test"), "../../fabric/linux/zonefilter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := f.in(`modprobe veth; mount -t bpf bpf /sys/fs/bpf; mkdir -p /run/netns /run/bpf; uname -r; cd /tmp
INOF_REQUIRE_NETNS=1 /lab/bin/zonefilter.test -test.v -rapid.checks=10 -rapid.nofailfile \
	-test.run 'EachPlace|NextBest|NextProcess|Rights|NoBTF|TheProgramDoesWhatTheRuleSays/(native|tc)apartpairs' 2>&1 || echo FAILED`)
	t.Log(out)
	if regexp.MustCompile(`(?m)^\s*--- (FAIL|SKIP)|^FAILED`).MatchString(out) || !regexp.MustCompile(`(?m)^PASS`).MatchString(out) {
		t.Error("not all of it works on this kernel")
	}
	if !regexp.MustCompile(`^6\.1\.`).MatchString(out) {
		t.Errorf("this is another kernel than docs/operations.md names")
	}
}
