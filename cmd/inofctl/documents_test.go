package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// isCommand says what is wrong with a command line of this program as a document has it.
func isCommand(root *cobra.Command, line string) string {
	line = strings.NewReplacer("[", " ", "]", " ", "(", " ", ")", " ").Replace(line)
	if i := strings.IndexAny(line, "|;&#<>\\$"); i >= 0 {
		line = line[:i]
	}
	cmd, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err.Error()
	}
	for _, word := range rest {
		switch name, flag := strings.CutPrefix(word, "--"); {
		case flag:
			name, _, _ = strings.Cut(strings.TrimRight(name, ",.:"), "=")
			if name != "" && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
				return "it has no flag --" + name
			}
		case cmd.HasSubCommands() && !strings.HasPrefix(word, "-"):
			return "it has no subcommand " + word
		}
	}
	return ""
}

// Every command that a document names is there, with the flags that it has there; in the table of
// what other tools call it those too that stand without the program.
func TestTheDocumentsNameCommandsThatThereAre(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root := (&app{}).root()
	root.InitDefaultCompletionCmd() // cobra does that when it runs
	code := regexp.MustCompile("(?s)```.*?```|`[^`]+`")
	all := 0
	check := func(file, line string) {
		if all++; line != "" {
			if wrong := isCommand(root, line); wrong != "" {
				t.Errorf("%s: inofctl %s: %s", filepath.Base(file), line, wrong)
			}
		}
	}
	for _, file := range append(files, "../../README.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range code.FindAllString(string(b), -1) {
			if !strings.HasPrefix(span, "```") {
				span = strings.Join(strings.Fields(strings.Trim(span, "`")), " ")
			}
			for line := range strings.Lines(span) {
				line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "sudo "), "bin/")
				if line, ok := strings.CutPrefix(line, "inofctl "); ok {
					check(file, line)
				}
			}
		}
	}
	const doc = "../../docs/operations.md"
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "### What other tools call it\n")
	if table, _, _ = strings.Cut(table, "\n## "); !ok {
		t.Fatal("there is no table of what other tools call it")
	}
	rows := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, " | ")
		if len(cells) != 2 || strings.HasPrefix(row, "| there") || strings.HasPrefix(row, "| ---") || strings.HasPrefix(row, "| SNMP") {
			continue
		}
		rows++
		parent, named := "", false
		for _, span := range code.FindAllString(cells[1], -1) {
			line, own := strings.CutPrefix(strings.Trim(span, "`"), "inofctl ")
			word, _, _ := strings.Cut(line, " ")
			if found, _, err := root.Find([]string{word}); err != nil || found == root {
				if parent == "" || !regexp.MustCompile(`^[a-z-]+$`).MatchString(line) {
					continue // a room, leaves
				}
				line = parent + " " + line
			}
			parent, _, _ = strings.Cut(line, " ")
			named = named || own
			check(doc, line)
		}
		if !named {
			t.Errorf("no command in %q", row)
		}
	}
	if all < 100 || rows < 20 {
		t.Errorf("only %d commands and %d rows were found", all, rows)
	}
	for _, bad := range []string{"zone extent 1h", "zone commit --conform 1m", "sohw host"} {
		if isCommand(root, bad) == "" {
			t.Errorf("inofctl %s is taken for a command", bad)
		}
	}
}
