package netnstest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// EnvSkipped names the file to which each skip adds a line of four fields with a tab
// between them: package, test, what is missing, and how to get it: the name of a Debian
// package, a `make` target, or nothing.
// `make test` makes its closing list of it.
const EnvSkipped = "INOF_SKIPPED"

// packages are the Debian packages of the programs that tests run.
var packages = map[string]string{
	"bird":                "bird2",
	"chromium":            "chromium",
	"birdc":               "bird2",
	"/usr/lib/frr/bfdd":   "frr",
	"/usr/lib/frr/zebra":  "frr",
	"vtysh":               "frr",
	"lldpd":               "lldpd",
	"lldpcli":             "lldpd",
	"nft":                 "nftables",
	"systemctl":           "systemd",
	"systemd-analyze":     "systemd",
	"dpkg-deb":            "dpkg",
	"lintian":             "lintian",
	"systemd-sysusers":    "systemd",
	"openssl":             "openssl",
	"prometheus":          "prometheus",
	"promtool":            "prometheus",
	"redis-server":        "redis-server",
	"buildah":             "buildah",
	"rsyslogd":            "rsyslog",
	"rsyslog over TLS":    "rsyslog-gnutls",
	"qemu-system-x86_64":  "qemu-system-x86",
	"qemu-aarch64-static": "qemu-user-static",
	"tcpdump":             "tcpdump",
	"gnmi_cli":            "make tools",
	"telegraf":            "make tools",
	"yangcli":             "yangcli",
	"tshark":              "tshark",
	"yanglint":            "libyang2-tools",
}

// Required tells whether everything has to be tested: INOF_REQUIRE_NETNS=1.
func Required() bool { return os.Getenv("INOF_REQUIRE_NETNS") == "1" }

// Require skips a test for which something is missing, or fails it; what says what was
// tried. Without an error it does nothing.
func Require(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		missing(t, fmt.Sprintf("%s: %v", what, err), "")
	}
}

// Programs skips a test that runs programs of other projects where one of them is not
// installed, or fails it. It fails for a program of which nobody here knows where it
// comes from.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		pkg, ok := packages[name]
		if !ok {
			t.Fatalf("netnstest does not know which package %s is in", name)
		}
		if _, err := exec.LookPath(name); err != nil {
			missing(t, name+" is not installed", pkg)
			return
		}
	}
}

// Python skips a test that runs a module of Debian's Python where that is not installed, or fails
// it. Its package is python3-MODULE.
func Python(t testing.TB, module string) {
	t.Helper()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import "+module).CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("Debian's Python has no module %s: %v %.200s", module, err, out), "python3-"+module)
	}
}

// missing ends a test that cannot be done here.
func missing(t testing.TB, what, pkg string) {
	t.Helper()
	if Required() {
		t.Fatalf("INOF_REQUIRE_NETNS=1, but %s", what)
		return
	}
	note(t.Name(), what, pkg)
	t.Skipf("SKIPPED: %s", what)
}

// LeftOut says what a test that goes on leaves out for want of a program, or fails the
// test.
func LeftOut(t testing.TB, what, program string) {
	t.Helper()
	if Required() {
		t.Errorf("INOF_REQUIRE_NETNS=1, but %s is left out", what)
		return
	}
	note(t.Name(), "leaves out "+what, packages[program])
	t.Logf("LEFT OUT: %s", what)
}

// LeftTo skips a test that belongs to another target of the Makefile.
func LeftTo(t testing.TB, target string) {
	t.Helper()
	note(t.Name(), target, target)
	t.Skipf("left to `%s`", target)
}

// note adds a line to the file of skips. One write a line, so that several test
// binaries may do so at once.
func note(test, what, from string) {
	file := os.Getenv(EnvSkipped)
	if file == "" {
		return
	}
	of := "?"
	if info, ok := debug.ReadBuildInfo(); ok {
		of = strings.TrimSuffix(strings.TrimPrefix(info.Path, "github.com/openinof/inof/"), ".test")
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\t%s\t%s\t%s\n", of, test, strings.Join(strings.Fields(what), " "), from)
		f.Close()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "the list of skipped tests: %v\n", err)
	}
}
