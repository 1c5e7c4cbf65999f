package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/testbed/labtest"
)

// Who follows docs/quickstart.md sees what it says.
func TestTheQuickstartRunsAsItIsWritten(t *testing.T) {
	labtest.RequireNetns(t)
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range strings.Split(string(page), "```sh run\n")[1:] {
		commands, _, _ := strings.Cut(block, "```")
		script.WriteString(commands)
	}
	root, dir := suite.Root(), t.TempDir()
	text := strings.NewReplacer("/run/inof-lab", root, "/tmp/", dir+"/", "sudo ", "").Replace(script.String())
	// The agents need a moment to register, a notice one to be acked: a person is slower than that.
	text = strings.ReplaceAll(text, "inofctl show host\n", "await 'inofctl show host --state active' 198.51.100.21\ninofctl show host\n")
	text = strings.Replace(text, "inofctl --socket leaf1/run/inofd.sock show notice --times\n",
		"await 'inofctl --socket leaf1/run/inofd.sock show notice' 'inactive.*link-down.*acked'\ninofctl --socket leaf1/run/inofd.sock show notice --times\n", 1)
	text = strings.ReplaceAll(text, "      # who would lose whom\n", " || [ $? = 3 ] # it finds something\n")
	text = strings.ReplaceAll(text, "why 192.0.2.11 198.51.100.21\n", "why 192.0.2.11 198.51.100.21 || [ $? != 0 ] # it says so\n")
	helper := "await() { for i in $(seq 600); do $1 | grep -q \"$2\" && return; sleep 0.1; done; echo \"$1 never shows $2\"; return 1; }\n"
	c := exec.Command("bash", "-ec", helper+text)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+suite.Programs(t)+":"+os.Getenv("PATH"), "INOF_LAB_ROOT="+root, "EDITOR=sed -i /198.51.100.21/d")
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(suite.Programs(t), "inofctl"), "lab", "down", "--root", root, "inof-leafspine")
		_ = down.Run() // it is down if all went well
	})
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"1 lost", "last path", "link-down", "cannot be reached"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nowhere %q in\n%s", want, out)
		}
	}
}
