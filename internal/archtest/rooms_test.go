package archtest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are packages through which what comes in falls once: their files in the order in which it
// does. A file calls only those that stand after it, and no function comes back to itself over
// another.
var rooms = map[string][]string{
	"device": {
		"why.go facts.go views.go latency.go", // what operators see
		"settings.go core.go restore.go observe.go byhand.go drain.go hostclear.go reflector.go fencing.go", // in: from operators, and time
		"peers.go frames.go ports.go paths.go testnotice.go access.go",                                      // in: from the network
		"settle.go", // what an input leaves to be done
		"apply.go holder.go declared.go agreement.go",        // what reflectors say; an address passes on
		"hosts.go binding.go faults.go",                      // what is true of hosts
		"change.go contest.go early.go hardzone.go fence.go", // whom a change concerns
		"mesh.go pathkeys.go mode.go",
		"route.go nqnclaims.go send.go stages.go",               // out
		"port.go declaration.go keeping.go limiter.go known.go", // what there is
		"lastsync.go", // what reflectors said last
		"kept.go",
		"actions.go times.go doc.go",
	},
	"hostnotify": {
		"restore.go observe.go notifier.go query.go nudge.go leaving.go told.go silent.go fence.go detour.go", // in, and out to operators
		"links.go change.go send.go",
		"difference.go cause.go",
		"flight.go truth.go fenced.go",
		"queue.go",
		"rows.go host.go pair.go history.go pacer.go stamp.go types.go doc.go", // what there is
	},
}

// oneWay are packages that several inputs come into: whichever does, a file never calls one by
// which it was called, however far away.
var oneWay = []string{
	"bfd", "cluster", "errdown", "hardzone", "inof/client", "inof/link", "inof/reflector", "inof/wire", "internal/config", "lldp", "zone",
}

func TestFilesOfARoomCallOneWay(t *testing.T) {
	for _, dir := range oneWay {
		t.Run(dir, func(t *testing.T) {
			calls := callsOf(t, filepath.Join("..", "..", dir), func(string) {})
			to := map[string]map[string]string{} // by file: whom it calls, and where
			for from, all := range calls.to {
				for f := range all {
					if a, b := calls.file[from], calls.file[f]; a != b {
						if to[a] == nil {
							to[a] = map[string]string{}
						}
						to[a][b] = from.Name() + " calls " + f.Name()
					}
				}
			}
			if len(to) < 3 {
				t.Errorf("calls of only %d files found", len(to))
			}
			done := map[string]bool{}
			var walk func(file string, way []string)
			walk = func(file string, way []string) {
				if i := slices.Index(way, file); i >= 0 {
					for j := i; j < len(way); j++ {
						next := append(way[j+1:], file)[0]
						t.Errorf("%s calls %s, by which it was called: %s", way[j], next, to[way[j]][next])
					}
					return
				}
				if done[file] {
					return
				}
				done[file] = true
				for next := range to[file] {
					walk(next, append(slices.Clone(way), file))
				}
			}
			for file := range to {
				walk(file, nil)
			}
		})
	}
}

// none is an importer of empty packages: only calls inside of a package are looked for.
type none struct{}

func (none) Import(path string) (*types.Package, error) {
	return types.NewPackage(path, filepath.Base(path)), nil
}

func TestWhatComesInFallsThroughTheRoomsOnce(t *testing.T) {
	for dir, lines := range rooms {
		t.Run(dir, func(t *testing.T) {
			place := map[string]int{}
			for _, line := range lines {
				for _, f := range strings.Fields(line) {
					place[f] = len(place)
				}
			}
			calls := callsOf(t, filepath.Join("..", "..", dir), func(file string) {
				if _, known := place[file]; !known {
					t.Errorf("%s is in no room: say where what comes in gets to it", file)
				}
			})
			between := 0
			for from, all := range calls.to {
				for to := range all {
					a, b := calls.file[from], calls.file[to]
					if a != b {
						between++
					}
					if place[b] < place[a] {
						t.Errorf("%s of %s calls %s of %s, which stands before it", from.Name(), a, to.Name(), b)
					}
				}
			}
			if between < 50 {
				t.Errorf("only %d calls between files found", between)
			}
			for f := range calls.to {
				if way := calls.back(f, f, map[*types.Func]bool{}); way != nil {
					t.Errorf("%s calls itself, over %s", f.Name(), strings.Join(way, ", "))
				}
			}
		})
	}
}

// calls are those between the functions of a package.
type calls struct {
	file map[*types.Func]string
	to   map[*types.Func]map[*types.Func]bool
}

// callsOf reads a package, telling each of its files.
func callsOf(t *testing.T, dir string, each func(file string)) calls {
	t.Helper()
	fset := token.NewFileSet()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range list {
		name := e.Name()
		if ours, err := build.Default.MatchFile(dir, name); err != nil {
			t.Fatal(err)
		} else if ours && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			each(name)
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: none{}, Error: func(error) {}} // what is imported is not there
	_, _ = conf.Check(dir, fset, files, &info)
	c := calls{map[*types.Func]string{}, map[*types.Func]map[*types.Func]bool{}}
	for _, o := range info.Defs {
		if f, ok := o.(*types.Func); ok {
			c.file[f], c.to[f] = filepath.Base(fset.Position(f.Pos()).Filename), map[*types.Func]bool{}
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			from, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(from, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id != from.Name {
					if to, ok := info.Uses[id].(*types.Func); ok && c.file[to] != "" {
						c.to[info.Defs[from.Name].(*types.Func)][to] = true
					}
				}
				return true
			})
		}
	}
	return c
}

// back gives the way by which from comes to the function end; nil: there is none.
func (c *calls) back(from, end *types.Func, seen map[*types.Func]bool) []string {
	for to := range c.to[from] {
		if to == end {
			if from != end {
				return []string{from.Name()}
			}
			continue // it does what it does once more, for all to see
		}
		if !seen[to] {
			seen[to] = true
			if way := c.back(to, end, seen); way != nil {
				return append([]string{from.Name()}, way...)
			}
		}
	}
	return nil
}
