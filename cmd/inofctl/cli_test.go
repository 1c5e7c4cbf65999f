package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
	"github.com/openinof/inof/internal/query"
)

var update = flag.Bool("update", false, "write the golden files anew")

// call runs inofctl at the samples' time.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, now: func() time.Time { return apitest.Now }, patience: requestTimeout}
	code = a.execute(t.Context(), args)
	return code, out.String(), err.String()
}

// golden compares with testdata/NAME.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-update writes it anew): %s", path, d)
	}
}

func TestTables(t *testing.T) {
	socket, _ := apitest.Serve(t, apitest.Sample())
	for name, args := range map[string]string{
		"status":          "show status",
		"hosts":           "show host",
		"hosts-filtered":  "show host --zone blue --type local --state active",
		"hosts-none":      "show host --zone nobody",
		"hosts-nqn":       "show host --nqn nqn.2026-01.org.example:array-1 --role target",
		"hosts-role":      "show host --role initiator",
		"host":            "show host 192.0.2.101",
		"zones":           "show zone",
		"zones-of-host":   "show zone --host 192.0.2.9",
		"zone":            "show zone blue",
		"peers":           "show peer",
		"peer":            "show peer 192.0.2.250",
		"ports":           "show port",
		"port":            "show port Ethernet2",
		"lldp":            "show lldp",
		"lldp-port":       "show lldp --port Ethernet10",
		"error-down":      "show error-down",
		"bfd":             "show bfd",
		"bfd-one":         "show bfd 192.0.2.13",
		"bfd-json":        "show bfd 192.0.2.14 -o json",
		"notices":         "show notice",
		"notices-limited": "show notice --limit 1",
		"notices-times":   "show notice --times",
		"latency":         "show latency",
		"latency-own":     "show latency --scope own",
		"latency-json":    "show latency --scope told -o json",
		"cluster":         "show cluster",
		"zone-export":     "zone export",
		"cluster-json":    "show cluster -o json",
		"events":          "show event",
		"telemetry":       "show telemetry",
		"telemetry-json":  "show telemetry /inof/interfaces/interface[name=Ethernet2]/state/optic -o json",
		"counters":        "show counter",
		"counters-room":   "show counter inof",
		"events-kind":     "show event --kind port",
		"hosts-json":      "show host 192.0.2.9 -o json",
		"lldp-json":       "show lldp --port Ethernet2 -o json",
		"status-json":     "show status -o json",
		"none-json":       "show error-down --port x -o json",
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := call(t, append(strings.Fields(args), "--socket", socket)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			golden(t, name, out)
			for line := range strings.Lines(out) {
				if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
					t.Errorf("spaces at the end of %q", line)
				}
			}
			if strings.Contains(out, "\x1b") && !strings.HasSuffix(name, "json") {
				t.Error("a host can write to the terminal")
			}
		})
	}
}

func TestChangesAreConfirmed(t *testing.T) {
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	for _, c := range []struct{ args, out string }{
		{"zone add red 192.0.2.1 192.0.2.8-192.0.2.9", "zone red added, members: 192.0.2.1,192.0.2.8-192.0.2.9\n"},
		{"zone add empty", "zone empty added, members: -\n"},
		{"zone member add red 2001:db8::/64", "zone red: added 2001:db8::/64\n"},
		{"zone member remove red 192.0.2.1", "zone red: removed 192.0.2.1\n"},
		{"zone remove red", "zone red removed\n"},
		{"port recover Ethernet2", "port Ethernet2 recovered\n"},
		{"cluster add 192.0.2.253 192.0.2.253:19517", "member 192.0.2.253 at 192.0.2.253:19517 added; it catches up and votes then\n"},
		{"cluster replace 192.0.2.252 192.0.2.252:19517", "member 192.0.2.252 replaced by that at 192.0.2.252:19517; it catches up and votes then\n"},
		{"cluster remove 192.0.2.252", "member 192.0.2.252 removed\n"},
		{"cluster set hard-zoning true", "hard-zoning is true\n"},
		{"port shut Ethernet2", "port Ethernet2 is being shut\n"},
		{"zone remove red -o json", "{\n  \"zone\": \"red\",\n  \"added\": [],\n  \"removed\": [],\n  \"present\": [],\n  \"dry_run\": false\n}\n"},
	} {
		code, out, errs := call(t, append(strings.Fields(c.args), "--socket", socket)...)
		if code != 0 || out != c.out || errs != "" {
			t.Errorf("%s: %d, %q, %q", c.args, code, out, errs)
		}
	}
	want := []string{"add zone red [192.0.2.1 192.0.2.8-192.0.2.9]", "add zone empty []", "add members red [2001:db8::/64]",
		"remove members red [192.0.2.1]", "remove zone red", "recover Ethernet2",
		"add member 192.0.2.253 192.0.2.253:19517", "replace member 192.0.2.252 192.0.2.252:19517", "remove member 192.0.2.252", "set hard-zoning true",
		"shut Ethernet2", "remove zone red"}
	if d := cmp.Diff(want, src.Changes()); d != "" {
		t.Error(d)
	}
	src.SetErr(fmt.Errorf("zones come from the reflector 192.0.2.250: %w", api.ErrRefused))
	code, out, errs := call(t, "zone", "remove", "red", "--socket", socket)
	if code != 1 || out != "" || errs != "inofctl: zones come from the reflector 192.0.2.250: refused\n" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}

func TestExitCodesAndWords(t *testing.T) {
	socket, _ := apitest.Serve(t, apitest.Sample())
	for _, c := range []struct {
		args string
		code int
		err  string
	}{
		{"", 2, "inofctl what? One of: "},
		{"shwo", 2, `unknown command "shwo", did you mean show?`},
		{"show", 2, "inofctl show what? One of: bfd, cluster, counter, error-down, event, fence, host"},
		{"show hots", 2, `unknown command "hots", did you mean host?`},
		{"show xyzzy", 2, `unknown command "xyzzy", one of: bfd, cluster, counter, error-down`},
		{"zone member", 2, "inofctl zone member what? One of: add, remove"},
		{"show host --inconsistent", 2, "unknown flag: --inconsistent"},
		{"show host --type here", 2, "one of local, remote"},
		{"show host -o yaml", 2, "one of table, json"},
		{"show host blue", 2, `"blue" is not an IP address`},
		{"show host --device tor", 2, `"tor" is not an IP address`},
		{"show host 192.0.2.1 192.0.2.2", 2, `too many arguments from "192.0.2.2" on`},
		{"show notice --limit 5x", 2, "a whole number from 0 on"},
		{"show latency --scope all", 2, "own"},
		{"show notice --limit -5", 2, "a whole number from 0 on"},
		{"zone add", 2, "too few arguments: inofctl zone add NAME [MEMBER...]"},
		{"zone add z 192.0.2", 2, `member "192.0.2"`},
		{"zone member add z", 2, "too few arguments"},
		{"check", 2, "too few arguments"},
		{"show host 192.0.2.200", 1, "no host 192.0.2.200 is known here"},
		{"show zone nobody", 1, `no zone "nobody" is known here`},
		{"show port Ethernet99", 1, `no access port "Ethernet99" on this device`},
		{"check /nonexistent.yaml", 1, "no such file"},
		{"why 192.0.2.1", 2, "too few arguments"},
		{"why 192.0.2.1 blue", 2, `"blue" is not an IP address`},
		{"why 192.0.2.1 192.0.2.1", 1, "two different IP addresses"},
		{"show status --socket /nonexistent.sock", 1, "inofd is not running"},
		{"watch --socket /nonexistent.sock", 1, "inofd is not running"},
		{"version", 0, ""},
		{"completion bash", 0, ""},
		{"show host --help", 0, ""},
	} {
		code, _, errs := call(t, append([]string{"--socket", socket}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.err) || code == 0 && errs != "" {
			t.Errorf("%q: exit code %d, want %d, said %q", c.args, code, c.code, errs)
		}
		if strings.Contains(errs, "see: ") != (code == exitUsage) {
			t.Errorf("%q: %q", c.args, errs)
		}
	}
}

func TestCheckListsEveryProblem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("device: {id: x}\nports: {access: [a]}\nlgo: {}\n")
	code, out, errs := call(t, "check", path)
	if code != 1 || out != "" || strings.Count(errs, path+":") != 3 || !strings.HasSuffix(errs, ": 2 problems\n") {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	code, out, _ = call(t, "check", path, "-o", "json")
	var report struct {
		Good     bool
		Problems []string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || report.Good || len(report.Problems) != 2 {
		t.Errorf("%d, %q, %v", code, out, err)
	}
	write("device: {id: 192.0.2.1, name: a}\nports: {access: [a]}\n")
	code, out, errs = call(t, "check", path)
	if code != 0 || !strings.Contains(out, "good: device 192.0.2.1 (a), standalone") || errs != "" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
}

func TestCompletionAsksTheDaemon(t *testing.T) {
	socket, _ := apitest.Serve(t, apitest.Sample())
	for args, want := range map[string]string{
		"show zone ":           "blue\ndefault\ngreen\n",
		"zone member add ":     "blue\ndefault\ngreen\n",
		"show port ":           "Ethernet2\nEthernet10\n",
		"show host --zone ":    "blue\ndefault\ngreen\n",
		"show host -o ":        "table\njson\n",
		"zone remove blue ":    "",
		"show host --type=loc": "",
	} {
		list := strings.Split(args, " ")
		_, out, _ := call(t, append([]string{"__complete", "--socket", socket}, list...)...)
		got, _, _ := strings.Cut(out, ":")
		if want != "" && got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

// lines gives what is written to it line by line.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
	ch  chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	for {
		line, rest, ok := strings.Cut(l.buf.String(), "\n")
		if !ok {
			return len(p), nil
		}
		l.buf.Reset()
		l.buf.WriteString(rest)
		l.ch <- line
	}
}

func TestWatchGoesOnAfterARestartOfTheDaemon(t *testing.T) {
	first := apitest.Sample()
	socket, stop := apitest.Serve(t, first)
	out, errs := &lines{ch: make(chan string, 1000)}, &lines{ch: make(chan string, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	a := &app{out: out, err: errs, now: func() time.Time { return apitest.Now }, patience: requestTimeout}
	go func() { code <- a.execute(ctx, []string{"watch", "--socket", socket, "-o", "json"}) }()
	next := func() api.Event {
		t.Helper()
		var e api.Event
		select {
		case line := <-out.ch:
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
		case <-time.After(40 * time.Second):
			t.Fatal("no event came")
		}
		return e
	}
	// watch gives what happens after it has connected, whenever that is.
	for seen := false; !seen; {
		first.Append(api.Event{Kind: "test"})
		select {
		case <-out.ch:
			seen = true
		case <-time.After(time.Millisecond):
		}
	}
	e := first.Append(api.Event{Kind: "test", Text: "last"})
	for next().ID != e.ID {
	}
	stop()
	if line := <-errs.ch; line != "inofctl: inofd went away, waiting for it" {
		t.Errorf("%q", line)
	}
	second := &apitest.Source{EventLog: api.NewEventLog(10, time.UnixMicro(1_000_000))}
	second.Append(api.Event{Kind: "daemon", Text: "started"})
	apitest.ServeAt(t, second, socket)
	if e := next(); e.ID != 1_000_000 || e.Text != "started" {
		t.Errorf("after the restart: %+v", e)
	}
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("^C gives exit code %d", c)
	}
}

func TestDurationsForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 340 * time.Millisecond: "340ms", 999_900 * time.Microsecond: "999ms", 640 * time.Microsecond: "640us", 1250 * time.Millisecond: "1.3s", 3 * time.Second: "3s",
		12500 * time.Millisecond: "12s", time.Minute: "1m", 312 * time.Second: "5m12s", 3*time.Hour + 5*time.Minute: "3h5m",
		76*time.Hour + time.Second: "3d4h", -2 * time.Second: "-2s",
	} {
		if got := query.Human(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	us := func(v int64) *int64 { return &v }
	for v, want := range map[*int64]string{nil: "", us(0): "0us", us(999): "999us", us(1530): "1.53ms", us(2_500_000): "2.50s"} {
		if got := query.Micros(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestAMistakeOfTheProgramIsLoud(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	must(errors.Join(io.EOF))
}

// A script learns from the exit code whether something needs attention, and whether it
// could be asked at all.
func TestCheckOfTheStatusTellsByItsExitCode(t *testing.T) {
	src := apitest.Sample()
	socket, stop := apitest.Serve(t, src)
	status := func(args ...string) (int, string, string) {
		return call(t, append([]string{"show", "status", "--socket", socket}, args...)...)
	}
	if code, out, errs := status("--check"); code != 3 || errs != "" || !strings.Contains(out, "Warning: ") {
		t.Errorf("with warnings: %d, %q, %q", code, out, errs)
	}
	if code, out, _ := status("--check", "-o", "json"); code != 3 || !strings.Contains(out, `"rule": "frames-dropped"`) {
		t.Errorf("with warnings: %d, %q", code, out)
	}
	if code, _, _ := status(); code != 0 {
		t.Errorf("without --check: %d", code)
	}
	src.StatusValue.Warnings = nil
	if code, out, _ := status("--check"); code != 0 || !strings.Contains(out, "Health:        good") {
		t.Errorf("without warnings: %d, %q", code, out)
	}
	stop()
	if code, _, _ := status("--check"); code != 1 {
		t.Errorf("without a daemon: %d", code)
	}
}

// The answer fits a screen, and the exit code says whether it is a good one.
func TestWhyTellsByItsExitCode(t *testing.T) {
	src := apitest.Sample()
	socket, _ := apitest.Serve(t, src)
	code, out, errs := call(t, "why", "192.0.2.101", "192.0.2.9", "--socket", socket)
	if code != 3 || errs != "" {
		t.Errorf("%d, %q", code, errs)
	}
	golden(t, "why", out)
	if n := strings.Count(out, "\n"); n > 24 || strings.Contains(out, "\x1b") {
		t.Errorf("%d lines, %q", n, out)
	}
	code, out, _ = call(t, "why", "192.0.2.101", "192.0.2.9", "--socket", socket, "-o", "json")
	if code != 3 {
		t.Errorf("%d", code)
	}
	golden(t, "why-json", out)
	src.WhyValue.Good = true
	if code, _, errs := call(t, "why", "192.0.2.101", "192.0.2.9", "--socket", socket); code != 0 || errs != "" {
		t.Errorf("%d, %q", code, errs)
	}
}

// What a glance at the sessions shows fits a screen, however long the errors are.
func TestPeersFitAScreen(t *testing.T) {
	src := apitest.Sample()
	long := src.PeerValues[0]
	long.Device, long.Address = netip.MustParseAddr("192.168.222.250"), "192.168.222.250:19516"
	long.SyncIn, long.SyncOut, long.SyncOutWhy = "resumed", "resumed", strings.Repeat("it was away for longer than was kept, ", 5)
	long.MessagesIn, long.MessagesOut, long.Reconnects = 12345678, 12345678, 999
	long.LastError = strings.Repeat("connection reset by peer while reading the next message; ", 8)
	src.PeerValues = append(src.PeerValues, long)
	socket, _ := apitest.Serve(t, src)
	code, out, _ := call(t, "show", "peer", "--socket", socket)
	for _, line := range strings.Split(out, "\n") {
		if len(line) > 120 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if code != 0 || strings.Count(out, "connection reset by peer") != 8 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// An answer that could not be written is a failure, also in a pipeline.
func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	socket, _ := apitest.Serve(t, apitest.Sample())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"show", "host"}, {"version"}, {"config", "check"}, {"top", "--interval", "100ms"}} {
		var errs bytes.Buffer
		if code := run(t.Context(), append(args, "--socket", socket), full, &errs); code != exitFailed || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%v: %d %s", args, code, &errs)
		}
	}
}
