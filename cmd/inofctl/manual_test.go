package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each command that is listed has a manual page that says what it does and each of its flags, and
// is completed where it can be typed.
func TestEachCommandHasItsPageAndIsCompleted(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := call(t, "man", dir); code != 0 {
		t.Fatal(errs)
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())
		b, err := os.ReadFile(filepath.Join(dir, strings.Join(path, "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		page := strings.ReplaceAll(string(b), `\-`, "-")
		said := strings.FieldsFunc(c.Short, func(r rune) bool { return r == '\'' || r == '`' }) // troff writes these otherwise
		if !strings.Contains(page, said[0]) {
			t.Errorf("the page of %s does not say %q", c.CommandPath(), said[0])
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(page, "--"+f.Name) {
				t.Errorf("the page of %s does not have --%s", c.CommandPath(), f.Name)
			}
		})
		if c.HasParent() && c.Name() != "help" && c.Name() != "completion" {
			args := append([]string{cobra.ShellCompRequestCmd}, path[1:len(path)-1]...)
			if code, out, errs := call(t, append(args, c.Name())...); code != 0 || !strings.Contains(out, c.Name()) {
				t.Errorf("%s is not completed: %s%s", c.CommandPath(), out, errs)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk((&app{}).root())
	if pages < 100 {
		t.Errorf("%d pages", pages)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, errs := call(t, "completion", shell); code != 0 || !strings.Contains(out, "inofctl") {
			t.Errorf("%s: %s", shell, errs)
		}
	}
}
