package telemetry

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openinof/inof/dist/yang"
	"github.com/openinof/inof/internal/netnstest"
)

const modules = "../../dist/yang/"

// dist/yang/openinof-inof.yang has every leaf below /inof and nothing else: run with -update
// after a change.
func TestTheModuleIsTheTable(t *testing.T) {
	const file = modules + "openinof-inof.yang"
	if *update {
		if err := os.WriteFile(file, []byte(YANG()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := yang.Text(Module); err != nil || text != YANG() {
		t.Errorf("the module is not what the table says: go test ./internal/telemetry -update (%v)", err)
	}
	for _, m := range yang.Modules() {
		text, err := yang.Text(m.Name)
		if err != nil || !strings.Contains(text, "revision "+m.Revision+" {") || !strings.Contains(text, `namespace "`+m.Namespace+`"`) {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if all, err := yang.Files.ReadDir("."); err != nil || len(all) != len(yang.Modules()) {
		t.Errorf("%d files, %v", len(all), err)
	}
	if m := yang.Modules()[0]; m.Name != Module || m.Namespace != Namespace || m.Revision != Revision {
		t.Errorf("%+v", m)
	}
}

// yanglint takes the modules without a word.
func TestYanglintTakesTheModules(t *testing.T) {
	netnstest.Programs(t, "yanglint")
	for _, m := range yang.Modules() {
		out, err := exec.Command("yanglint", "-f", "yang", modules+m.Name+".yang").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "module "+m.Name) {
			t.Errorf("%s: %v\n%s", m.Name, err, out)
		}
	}
}
