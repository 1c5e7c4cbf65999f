package audit

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(t *testing.T, l *Log, what string) {
	t.Helper()
	if err := l.Append(Record{Time: time.Unix(1, 0).UTC(), By: "alice", From: "unix socket", What: what, Result: "done"}); err != nil {
		t.Fatal(err)
	}
}

// Nothing can be changed, taken out or put in without being seen; a restart goes on with the chain.
func TestTheChainShowsEveryTamperedLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	for i := range 3 {
		add(t, l, fmt.Sprint("deed ", i))
	}
	l = open(t, dir)
	for i := range 3 {
		add(t, l, fmt.Sprint("deed ", 3+i))
	}
	if n, err := Verify(dir); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	if list, err := l.Newest(2); err != nil || len(list) != 2 || list[1].What != "deed 5" || list[1].Seq != 6 {
		t.Errorf("%+v, %v", list, err)
	}
	good, err := os.ReadFile(path(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(good), "\n"), "\n")
	for name, bad := range map[string]string{
		"changed":   strings.Replace(string(good), "deed 2", "deed 9", 1),
		"taken out": strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
		"swapped":   lines[1] + lines[0] + strings.Join(lines[2:], ""),
		"put in":    lines[0] + lines[0] + strings.Join(lines[1:], ""),
		"no record": lines[0] + "{}x\n" + strings.Join(lines[1:], ""),
	} {
		if err := os.WriteFile(path(dir, 0), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(dir); err == nil || !strings.Contains(err.Error(), FileName+": line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALineThatACrashHasCutCostsThatLineOnly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, "one")
	add(t, l, "two")
	b, _ := os.ReadFile(path(dir, 0))
	if err := os.WriteFile(path(dir, 0), b[:len(b)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir)
	if err == nil {
		t.Error("nobody is told")
	}
	add(t, l, "three")
	if list, _ := l.Newest(9); len(list) != 2 || list[1].What != "three" || list[1].Prev != list[0].Hash {
		t.Errorf("%+v", list)
	}
}

func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.most = 4 << 10
	for range (MaxFiles + 1) * 4 {
		add(t, l, strings.Repeat("x", 1<<10))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != MaxFiles {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if i, _ := e.Info(); i.Size() > l.most {
			t.Errorf("%s has %d bytes", e.Name(), i.Size())
		}
	}
	if _, err := Verify(dir); err != nil {
		t.Error(err)
	}
	l.file.Close()
	if err := l.Append(Record{What: strings.Repeat("y", 2*MaxLine)}); err == nil {
		t.Error("a file that is closed takes records")
	}
	if l.Counters().Errors != 1 {
		t.Errorf("%+v", l.Counters())
	}
}
