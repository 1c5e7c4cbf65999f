package hostnotify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// rooms are the files in the order in which a change falls through them: what comes in, whom
// it concerns, what is done about the difference to what is true, what is under way, what
// waits for its frame, and the frame. A file calls none above its own line.
var rooms = []string{
	"notifier.go nudge.go restore.go leaving.go told.go silent.go", // in, and out to operators
	"links.go change.go send.go",
	"difference.go cause.go",
	"truth.go flight.go",
	"queue.go",
	"host.go pair.go rows.go history.go pacer.go rto.go stamp.go types.go doc.go", // what there is
}

func TestAChangeFallsThroughTheRoomsOnce(t *testing.T) {
	level := map[string]int{}
	for i, line := range rooms {
		for _, f := range strings.Fields(line) {
			level[f] = i
		}
	}
	files := map[string]*ast.File{}
	home := map[string]string{} // of a method, empty where several have its name
	list, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if _, known := level[name]; !known {
			t.Fatalf("%s is in no room: say where a change comes to it", name)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				if _, twice := home[fn.Name.Name]; twice {
					name = ""
				}
				home[fn.Name.Name] = name
				name = e.Name()
			}
		}
	}
	calls := 0
	for name, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if to := home[s.Sel.Name]; to != "" && to != name {
				calls++
				if level[to] < level[name] {
					t.Errorf("%s calls %s of %s, which is above it", name, s.Sel.Name, to)
				}
			}
			return true
		})
	}
	if calls < 50 {
		t.Errorf("only %d calls between files found", calls)
	}
}
