package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What is committed, and goes into the daemon, is what the source gives: after a change of
// dashboard/web, `go generate ./dashboard`.
func TestTheCommittedBundleIsWhatTheSourceGives(t *testing.T) {
	files, err := bundle("../web")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()] == nil {
			t.Errorf("static/%s comes from nothing", e.Name())
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("..", "static", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("static/%s is not what dashboard/web gives: go generate ./dashboard (%v)", name, err)
		}
	}
}
