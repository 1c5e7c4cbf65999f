package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/openinof/inof"

// The rooms by what they may know. "x/..." means x and everything below it.
var (
	values   = []string{"fabric", "snsd", "zone", "zone/change"}
	machines = []string{"hardzone", "fabric/fence", "lldp", "presence", "errdown", "bfd", "inof/wire", "inof/client", "inof/reflector", "hostnotify"}
	belowCmd = slices.Concat(values, machines, []string{"dist/yang", "inof/link", "device", "hostkernel", "hostagent", "hostagent/fencing", "fabric/linux/...", "fabric/sonic", "model/...", "internal/...", "testbed/...", "labs"})
)

// allowed is the import rule: what each package may import of this module. The
// longest matching key counts; a package without a key breaks the rule.
var allowed = map[string][]string{
	"fabric":       {},
	"fabric/linux": {"fabric", "fabric/linux/carrier", "internal/nowait"},
	// The program in the kernel function that notices a lost carrier, and its reader.
	"fabric/linux/carrier": {"fabric"},
	"fabric/sonic":         slices.Concat(values, []string{"hardzone", "fabric/fence"}),
	// Blocks and what is never forwarded, in the kernel.
	"fabric/linux/portguard": slices.Concat(values, []string{"fabric/fence", "fabric/linux/bpfpins"}),
	"fabric/linux/bpfpins":   {}, // directories where programs and maps outlive the daemon
	"model/...":              {"fabric", "model/..."},
	// The scenarios place the control plane's machines on the model's devices.
	"model/scenario/...": slices.Concat(values, machines, []string{"model/..."}),
	"model/serve":        slices.Concat(values, machines, []string{"model/..."}),
	"model/control":      slices.Concat(values, machines, []string{"inof/link", "device", "model/...", "internal/api", "internal/keep", "internal/virtual"}),

	"nvmetcp":    {}, // its own edge: client.go
	"hostkernel": {"nvmetcp", "internal/wholefile"},
	"hostagent":  {"fabric", "snsd", "hostkernel", "nvmetcp", "lldp"},
	// Level array: between the agent of a host and that of an array, and by the controllers.
	"hostagent/fencing": {"fabric", "fabric/fence", "snsd", "hostkernel", "hostagent"},

	"snsd": {"fabric"},
	"zone": {"fabric", "snsd"},
	// What operators write of zones, its versions, and zones that other makers' switches print.
	"zone/change":  {"fabric", "snsd", "zone"},
	"zone/imports": {"zone", "zone/change"},
	"zone/tree":    {"zone", "zone/change"},

	"hardzone": slices.Concat(values, []string{"internal/setting"}),
	// What an array's switch blocks while hosts leave a path.
	"fabric/fence": values,
	// The rows of hard zoning in the kernel.
	"fabric/linux/zonefilter": slices.Concat(values, []string{"hardzone", "fabric/linux/bpfpins"}),

	"lldp":     slices.Concat(values, []string{"internal/timerheap"}),
	"presence": {"fabric", "internal/timerheap"},
	"errdown":  slices.Concat(values, []string{"internal/setting"}),
	"bfd":      slices.Concat(values, []string{"internal/timerheap"}),
	// Client and reflector know neither each other nor the link that joins them.
	"inof/wire":      values,
	"inof/link":      slices.Concat(values, []string{"inof/wire", "internal/deepstack", "internal/nowait"}),
	"inof/client":    slices.Concat(values, []string{"inof/wire"}),
	"inof/reflector": slices.Concat(values, []string{"inof/wire"}),
	"inof/inoftest":  slices.Concat(values, []string{"inof/wire"}), // for tests only, see alsoInTests
	"hostnotify":     slices.Concat(values, []string{"internal/latency", "internal/timerheap"}),

	// Devices in virtual time, for the simulation and the model.
	"internal/virtual": slices.Concat(values, []string{"device", "inof/link", "inof/wire", "internal/timerheap"}),
	// One device as one machine. It shows operators itself as the API says it.
	"device": slices.Concat(values, machines, []string{"internal/api", "internal/health", "internal/keep", "internal/store", "internal/latency"}),

	"internal/bfdd":      append([]string{"bfd"}, values...),
	"internal/timerheap": {},
	"internal/setting":   {}, // declarations of what an operator may set
	"internal/latency":   {}, // durations in, percentiles out
	"internal/journald":  {},
	"internal/logbound":  {},
	"internal/manual":    {},
	"internal/progress":  {}, // how far what takes a while is
	"internal/deepstack": {}, // stacks that have grown before they are needed
	"internal/nowait":    {}, // sockets without a word to the scheduler
	"internal/syslog":    {},
	"internal/audit":     {},                                       // what operators did, in files that show tampering
	"internal/cgroup":    {},                                       // the memory limit of the control group
	"internal/wholefile": {},                                       // files that are replaced at once or not at all
	"internal/store":     {"internal/wholefile"},                   // rows that outlive the process and its machine
	"internal/keep":      {"internal/store", "internal/wholefile"}, // the same, with the unsaved ones in memory
	// The zones of several reflectors in one log; of inof the passwords and certificates of
	// the sessions, which protect the connections of the members too.
	"cluster": slices.Concat(values, []string{"inof/link", "inof/reflector", "inof/wire"}),

	"internal/config":  slices.Concat(values, []string{"errdown", "hardzone", "fabric/fence", "internal/setting", "internal/syslog", "internal/wholefile"}), // what is set about faults is declared where they are
	"internal/api/...": slices.Concat(values, []string{"hardzone", "internal/api/..."}),
	"internal/daemon":  slices.Concat(values, machines, []string{"internal/gnmi", "inof/link", "device", "cluster", "dashboard", "internal/api", "internal/audit", "internal/bfdd", "internal/cgroup", "internal/config", "internal/deepstack", "internal/health", "internal/keep", "internal/store", "internal/latency", "internal/logbound", "internal/netconf", "internal/query", "internal/syslog", "internal/telemetry", "internal/wholefile", "model/..."}),
	// What operators can ask for, from the rows of the device to the table on the screen.
	"internal/query": slices.Concat(values, []string{"device", "internal/api", "internal/telemetry"}),
	// A door to what the API does.
	"internal/netconf": slices.Concat(values, []string{"dist/yang", "internal/api", "internal/telemetry", "internal/wholefile", "zone/tree"}),
	// One table of what can be known, from what the API shows.
	"internal/telemetry":   slices.Concat(values, []string{"internal/api", "internal/setting"}),
	"internal/api/apitest": slices.Concat(values, []string{"internal/api", "internal/query"}), // serves the queries from fixed rows
	// The server of gNMI, on that table.
	"internal/gnmi": slices.Concat(values, []string{"zone/tree", "internal/api", "internal/telemetry"}),
	// The rules of what is wrong look at what the API shows.
	"internal/health":    slices.Concat(values, []string{"bfd", "inof/link", "inof/wire", "internal/api", "internal/config"}),
	"internal/archtest":  {},
	"internal/plainns":   {},                   // what a new namespace must not take over
	"internal/netnstest": {"internal/plainns"}, // for tests only, see alsoInTests

	"labs":          {},
	"dist/yang":     {}, // files, embedded
	"dashboard":     {}, // a page, and a proxy to what it reads
	"scripts":       {}, // shell, and a test of it
	"testbed/...":   append([]string{"cluster"}, belowCmd...),
	"testbed/wires": {}, // below everything whose tests use it
	// Programs reach the machines through device and internal/daemon only.
	"cmd/...": slices.Concat(values, []string{"dashboard", "zone/imports", "hardzone", "device", "hostagent", "hostkernel", "fabric/linux/...", "fabric/sonic", "fabric/fence", "model/...", "internal/...", "testbed/...", "labs", "hostagent/fencing"}),
}

// alsoAllowed are the exceptions for single files.
var alsoAllowed = map[string][]string{
	"internal/daemon/assembly.go": {"fabric/linux"},
}

// alsoInTests is what the tests of a package may import beyond the package itself.
var alsoInTests = map[string][]string{
	"inof/wire":          {"inof/inoftest", "inof/link"}, // the examples of the document are those of a session
	"inof/link":          {"inof/inoftest", "inof/client", "inof/reflector", "testbed/wires"},
	"inof/client":        {"inof/inoftest"},
	"inof/reflector":     {"inof/inoftest", "inof/link", "inof/client"},
	"fabric/linux/...":   {"internal/netnstest"},
	"fabric/sonic":       {"internal/netnstest", "fabric/linux"},
	"hostkernel":         {"internal/netnstest"},
	"internal/keep":      {"internal/netnstest"},
	"internal/syslog":    {"internal/netnstest"},
	"internal/config":    {"internal/netnstest"},
	"internal/netconf":   {"internal/netnstest"},
	"internal/telemetry": {"dist/yang", "internal/netnstest"},
	"bfd":                {"internal/netnstest"},
	"internal/gnmi":      {"internal/netnstest"},
	"model/...":          {"internal/netnstest"},
	"internal/api/...":   {"internal/daemon", "testbed/wires"},
	"internal/bfdd":      {"testbed/wires"},
	"internal/daemon":    {"fabric/linux", "fabric/sonic", "internal/api/...", "internal/netnstest", "testbed/pki", "testbed/wires"},
	"cluster":            {"testbed/pki", "testbed/wires"},
}

// pure are the rooms that decide and never act: they take input and the time, and
// return what changed.
var pure = []string{"fabric/fence", "snsd", "zone", "zone/change", "zone/imports", "zone/tree", "lldp", "presence", "errdown", "bfd", "inof/wire", "inof/link", "inof/client", "inof/reflector", "cluster", "hostnotify", "device", "internal/health", "internal/latency", "internal/telemetry", "internal/timerheap"}

// edges are the files of a pure room that own its sockets and goroutines, besides
// transport*.go.
var edges = map[string][]string{
	"inof/link": {"server.go", "dialer.go", "conn.go", "reader.go", "writer.go", "probe.go", "refused.go", "credentialstore.go", "tally.go"}, // the last two are for goroutines of the others
	"cluster":   {"node.go", "node_change.go", "node_fsm.go", "node_log.go", "node_members.go", "node_state.go", "node_status.go", "node_storage.go", "node_watch.go"},
	"bfd":       {"server.go", "conn.go", "listener.go", "socket.go"},
}

func edge(file string) bool {
	names, ok := edges[path.Dir(file)]
	base := path.Base(file)
	return ok && (strings.HasPrefix(base, "transport") || slices.Contains(names, base))
}

// forbiddenInPure are packages by which a pure room would act.
var forbiddenInPure = []string{"net", "os", "os/...", "syscall", "sync", "sync/...", "golang.org/x/sys/...", "github.com/mdlayher/packet", "github.com/vishvananda/netlink"}

// clock are the functions of package time that read the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// source is one Go file as far as the rule is concerned.
type source struct {
	file    string // slash-separated, from the root of the module
	imports []string
	acts    []string // uses of the clock and go statements
}

func (s source) dir() string  { return path.Dir(s.file) }
func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") }

// matches tells whether pattern, a path or "x/...", holds p.
func matches(pattern, p string) bool {
	if base, deep := strings.CutSuffix(pattern, "/..."); deep {
		return p == base || strings.HasPrefix(p, base+"/")
	}
	return p == pattern
}

func anyMatches(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, p) })
}

// rule finds the entry of a table for a package: the longest key that holds it.
func rule(table map[string][]string, pkg string) (may []string, found bool) {
	longest := ""
	for key := range table {
		if matches(key, pkg) && len(key) > len(longest) {
			longest = key
		}
	}
	may, found = table[longest]
	return may, found
}

// violations gives one line for each breach of the rule.
func violations(files []source) []string {
	var out []string
	for _, f := range files {
		may, found := rule(allowed, f.dir())
		if !found {
			out = append(out, fmt.Sprintf("package %s (%s) is not in the table of internal/archtest: say there what it may import", f.dir(), f.file))
			continue
		}
		may = append(slices.Clone(may), alsoAllowed[f.file]...)
		if f.isTest() {
			extra, _ := rule(alsoInTests, f.dir())
			may = append(append(may, extra...), f.dir())
		}
		for _, imp := range f.imports {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok && !anyMatches(may, ours) {
				out = append(out, fmt.Sprintf("package %s: file %s imports %s; it may import %v", f.dir(), f.file, imp, may))
			}
		}
		out = append(out, impurities(f)...)
	}
	return out
}

// impurities gives what a file of a pure room must not touch.
func impurities(f source) []string {
	if !slices.Contains(pure, f.dir()) || f.isTest() || edge(f.file) {
		return nil
	}
	var out []string
	for _, imp := range f.imports {
		if anyMatches(forbiddenInPure, imp) {
			out = append(out, fmt.Sprintf("package %s: file %s imports %s; this room decides in pure code, act at the edge", f.dir(), f.file, imp))
		}
	}
	for _, a := range f.acts {
		out = append(out, fmt.Sprintf("package %s: file %s has %s; this room takes the time as an argument and starts no goroutine", f.dir(), f.file, a))
	}
	return out
}

// read parses one file.
func read(fset *token.FileSet, name, file string, src any) (source, error) {
	parsed, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	s := source{file: file}
	timeName := ""
	for _, imp := range parsed.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return source{}, err
		}
		s.imports = append(s.imports, p)
		if p == "time" {
			timeName = "time"
			if imp.Name != nil {
				timeName = imp.Name.Name
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			s.acts = append(s.acts, fmt.Sprintf("a go statement at line %d", fset.Position(n.Pos()).Line))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				s.acts = append(s.acts, fmt.Sprintf("time.%s at line %d", n.Sel.Name, fset.Position(n.Pos()).Line))
			}
		}
		return true
	})
	return s, nil
}

// readModule parses every Go file of the module.
func readModule(t *testing.T) []source {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("the root of the module is not two levels up: %v", err)
	}
	fset := token.NewFileSet()
	var files []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "out" || base == "bin") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != root {
				return filepath.SkipDir // a module of its own: a tool, or tests with what the daemon must not need
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := read(fset, name, filepath.ToSlash(rel), nil)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImportsPointOneWay(t *testing.T) {
	files := readModule(t)
	if len(files) < 20 {
		t.Fatalf("only %d Go files found: the walk is broken", len(files))
	}
	for _, v := range violations(files) {
		t.Error(v)
	}
}

// The rule must be able to fail: each fabricated file breaks it in one way, and
// the message names package, file and what is wrong.
func TestFabricatedViolationsAreFound(t *testing.T) {
	const ours = module + "/"
	for _, c := range []struct{ file, src, names string }{
		{"zone/bad.go", `import "` + ours + `inof/wire"`, ours + "inof/wire"},
		{"inof/client/bad.go", `import "` + ours + `inof/reflector"`, ours + "inof/reflector"},
		{"inof/reflector/bad.go", `import "` + ours + `inof/link"`, ours + "inof/link"},
		{"inof/wire/bad.go", `import "` + ours + `inof/link"`, ours + "inof/link"},
		{"device/bad.go", `import "` + ours + `inof/inoftest"`, ours + "inof/inoftest"},
		{"fabric/bad.go", `import "` + ours + `snsd"`, ours + "snsd"},
		{"lldp/bad_test.go", `import "` + ours + `hostnotify"`, ours + "hostnotify"},
		{"internal/daemon/tasks.go", `import "` + ours + `fabric/linux"`, ours + "fabric/linux"},
		{"model/engine.go", `import "` + ours + `zone"`, ours + "zone"},
		{"cmd/inofd/main.go", `import "` + ours + `inof/wire"`, ours + "inof/wire"},
		{"surprise/new.go", ``, "surprise"},
		{"errdown/bad.go", `import "os"`, "imports os"},
		{"hostnotify/bad.go", `import "net"`, "imports net"},
		{"device/bad.go", `import "sync"`, "imports sync"},
		{"device/bad.go", `import "` + ours + `internal/daemon"`, ours + "internal/daemon"},
		{"inof/link/session.go", `import "golang.org/x/sys/unix"`, "golang.org/x/sys/unix"},
		{"zone/bad.go", `import "sync"`, "imports sync"},
		{"lldp/bad.go", "import \"time\"\nvar t = time.Now()", "time.Now at line 3"},
		{"snsd/bad.go", "func f() { go f() }", "a go statement at line 2"},
	} {
		f, err := read(token.NewFileSet(), c.file, c.file, "package x\n"+c.src+"\n")
		if err != nil {
			t.Fatal(err)
		}
		got := violations([]source{f})
		if len(got) != 1 || !strings.Contains(got[0], c.names) || !strings.Contains(got[0], c.file) || !strings.Contains(got[0], f.dir()) {
			t.Errorf("%s with %q gave %q", c.file, c.src, got)
		}
	}
}

func TestAllowedImportsPass(t *testing.T) {
	const ours = module + "/"
	for file, imports := range map[string][]string{
		"zone/good.go":                {"net/netip", ours + "fabric", ours + "snsd", "time"},
		"inof/link/transport.go":      {"net", "os", ours + "zone"},
		"inof/link/server.go":         {"net", "sync"},
		"bfd/conn.go":                 {"net", "golang.org/x/sys/unix"},
		"internal/daemon/assembly.go": {ours + "fabric/linux", ours + "inof/link"},
		"testbed/lab.go":              {ours + "internal/daemon", ours + "fabric/linux", ours + "labs"},
		"zone/good_test.go":           {"os", ours + "zone"},
	} {
		if got := violations([]source{{file: file, imports: imports}}); len(got) != 0 {
			t.Errorf("%s: %q", file, got)
		}
	}
}
