package manual

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "does things", SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	shut := &cobra.Command{Use: "shut NAME", Short: "shut a port", Run: func(*cobra.Command, []string) {}}
	port := &cobra.Command{Use: "port", Short: "ports"}
	port.AddCommand(shut)
	root.AddCommand(port, Command("8", "1.2.3"))
	return root
}

// Each command has a page, but for this one; the same sources give the same bytes.
func TestEachCommandHasAPage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var first []byte
	for range 2 {
		dir := filepath.Join(t.TempDir(), "man8")
		root := program()
		root.SetArgs([]string{"man", dir})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		pages, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range pages {
			names = append(names, filepath.Base(p))
		}
		if got := strings.Join(names, " "); got != "prog-port-shut.8 prog-port.8 prog.8" {
			t.Errorf("pages %s", got)
		}
		b, err := os.ReadFile(filepath.Join(dir, "prog-port-shut.8"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "shut a port") || !strings.Contains(string(b), "iNOF 1.2.3") {
			t.Errorf("the page says\n%s", b)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Error("two runs give different pages")
		}
		first = b
	}
}

func TestADirectoryThatCannotBeMadeIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	root := program()
	root.SetArgs([]string{"man", filepath.Join(file, "man8")})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v", err)
	}
}
