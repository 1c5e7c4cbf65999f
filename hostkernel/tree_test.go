package hostkernel

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plant writes files below a fresh root.
func plant(t *testing.T, files map[string]string) Tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Tree{Root: root}
}

// host is a host with two TCP paths to one array, an RDMA path, a discovery controller and a
// local disk, as Linux 6.1 shows them.
func host(t *testing.T) Tree {
	const nqn = "nqn.2026-01.net.example:array1\n"
	files := map[string]string{
		"sys/class/nvme/nvme0/transport": "tcp\n", "sys/class/nvme/nvme0/state": "live\n", "sys/class/nvme/nvme0/subsysnqn": nqn,
		"sys/class/nvme/nvme0/address":   "traddr=10.1.1.2,trsvcid=4420,host_traddr=10.1.1.1,src_addr=10.1.1.1\n",
		"sys/class/nvme/nvme0/cntrltype": "io\n", "sys/class/nvme/nvme0/hostnqn": "nqn.h\n", "sys/class/nvme/nvme0/reconnect_delay": "10\n", "sys/class/nvme/nvme0/ctrl_loss_tmo": "1800\n", "sys/class/nvme/nvme0/delete_controller": "",
		"sys/class/nvme/nvme1/transport": "tcp\n", "sys/class/nvme/nvme1/state": "connecting\n", "sys/class/nvme/nvme1/subsysnqn": nqn,
		"sys/class/nvme/nvme1/address":   "host_iface=eth1,trsvcid=4420,host_traddr=2001:db8::1,traddr=2001:db8::2\n",
		"sys/class/nvme/nvme2/transport": "rdma\n", "sys/class/nvme/nvme2/state": "live\n", "sys/class/nvme/nvme2/subsysnqn": nqn,
		"sys/class/nvme/nvme2/address":   "traddr=10.2.1.2,trsvcid=4420\n",
		"sys/class/nvme/nvme3/transport": "tcp\n", "sys/class/nvme/nvme3/state": "live\n", "sys/class/nvme/nvme3/subsysnqn": "nqn.2014-08.org.nvmexpress.discovery\n",
		"sys/class/nvme/nvme3/address":   "traddr=10.1.1.2,trsvcid=8009,src_addr=10.1.1.1\n",
		"sys/class/nvme/nvme3/cntrltype": "discovery\n",
		"sys/class/nvme/nvme4/transport": "pcie\n", "sys/class/nvme/nvme4/state": "live\n", "sys/class/nvme/nvme4/subsysnqn": "x\n", "sys/class/nvme/nvme4/address": "0000:01:00.0\n",
		"sys/class/nvme-subsystem/nvme-subsys7/nvme0": "", "sys/class/nvme-subsystem/nvme-subsys7/iopolicy": "round-robin\n",
		"run/nvme/registry/nvme1/owner":             "stacd\n",
		"sys/module/nvme_core/parameters/multipath": "Y\n",
		"sys/kernel/uevent_seqnum":                  "1234\n",
		"dev/nvme-fabrics":                          "instance=-1,cntlid=-1,transport=%s,traddr=%s,host_iface=%s\n",
	}
	return plant(t, files)
}

func TestControllersAreRead(t *testing.T) {
	list, err := host(t).Controllers()
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr
	want := []Controller{
		{Instance: 0, State: Live, Transport: "tcp", NQN: "nqn.2026-01.net.example:array1", HostNQN: "nqn.h", Target: netip.MustParseAddrPort("10.1.1.2:4420"), Source: addr("10.1.1.1"), Subsystem: 7},
		{Instance: 1, State: Connecting, Transport: "tcp", NQN: "nqn.2026-01.net.example:array1", Target: netip.MustParseAddrPort("[2001:db8::2]:4420"), Source: addr("2001:db8::1"), Iface: "eth1", Subsystem: -1, Owner: "stacd"},
		{Instance: 2, State: Live, Transport: "rdma", NQN: "nqn.2026-01.net.example:array1", Target: netip.MustParseAddrPort("10.2.1.2:4420"), Subsystem: -1},
		{Instance: 3, State: Live, Transport: "tcp", NQN: "nqn.2014-08.org.nvmexpress.discovery", Discovery: true, Target: netip.MustParseAddrPort("10.1.1.2:8009"), Source: addr("10.1.1.1"), Subsystem: -1},
	}
	if !slices.Equal(list, want) {
		t.Errorf("got  %+v\nwant %+v", list, want)
	}
}

func TestThePolicyIsThatOfTheSubsystem(t *testing.T) {
	tree := host(t)
	c, err := tree.Controller(0)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := tree.IOPolicy(&c); p != "round-robin" || err != nil {
		t.Errorf("%q, %v", p, err)
	}
	c.Subsystem = -1
	if _, err := tree.IOPolicy(&c); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A controller that cannot be understood hides no other; one that vanishes is left out.
func TestTimesAndCommandsInFlightAreRead(t *testing.T) {
	const dir = "sys/class/nvme/nvme0/"
	tree := plant(t, map[string]string{
		dir + "kato": "5\n", dir + "nvme7c0n1/inflight": "       2        3\n", dir + "nvme7c0n2/inflight": "       0        4\n", dir + "ng7n1/inflight": "9 9\n",
		"sys/class/nvme/nvme1/kato": "never\n", "sys/class/nvme/nvme1/nvme7c1n1/inflight": "x\n",
	})
	a, b, none := &Controller{Instance: 0}, &Controller{Instance: 1}, &Controller{Instance: 2}
	if d, err := tree.KeepAliveTimeout(a); err != nil || d != 5*time.Second {
		t.Errorf("%v, %v", d, err)
	}
	if n, err := tree.InFlight(a); err != nil || n != 9 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := tree.KeepAliveTimeout(b); err == nil || !strings.Contains(err.Error(), "nvme1/kato") {
		t.Error(err)
	}
	if _, err := tree.InFlight(b); err == nil || !strings.Contains(err.Error(), "nvme7c1n1/inflight") {
		t.Error(err)
	}
	if _, err := tree.KeepAliveTimeout(none); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if n, err := tree.InFlight(none); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// The time of the whole kernel is longer while controllers are made, and only where it is the
// kernel's default.
func TestIOTimeoutIsLongerWhileControllersAreMade(t *testing.T) {
	tree := plant(t, map[string]string{ioTimeoutFile: "30\n"})
	want := func(v string) {
		t.Helper()
		if got, err := tree.read(ioTimeoutFile); err != nil || got != v {
			t.Errorf("io_timeout %s, %v, want %s", got, err, v)
		}
	}
	one := tree.lengthenIO(120)
	two := tree.lengthenIO(120)
	want("120")
	one()
	want("120")
	two()
	want("30")
	tree = plant(t, map[string]string{ioTimeoutFile: "10\n"})
	undo := tree.lengthenIO(120)
	want("10")
	undo()
	want("10")
	plant(t, nil).lengthenIO(120)()
}

func TestBadControllersHideNoOther(t *testing.T) {
	tree := host(t)
	if err := os.WriteFile(tree.path("sys/class/nvme/nvme0/address"), []byte("traddr=nowhere,trsvcid=4420\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tree.path("sys/class/nvme/nvme3/subsysnqn")); err != nil {
		t.Fatal(err)
	}
	list, err := tree.Controllers()
	if len(list) != 2 || err == nil || !strings.Contains(err.Error(), "nvme0/address: traddr=nowhere") {
		t.Errorf("%d controllers, %v", len(list), err)
	}
	if _, err := (Tree{Root: t.TempDir()}).Controllers(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no NVMe") {
		t.Errorf("without NVMe: %v", err)
	}
}

// A controller that comes and goes while controllers are read is there or is not; it is no error,
// and hides no other.
func TestFilesThatVanishWhileTheyAreReadAreNoError(t *testing.T) {
	tree := host(t)
	from, to := tree.path(controllersDir, "nvme0"), tree.path("gone")
	done := make(chan error, 1)
	go func() {
		for range 500 {
			if err := errors.Join(os.Rename(from, to), os.Rename(to, from)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		list, err := tree.Controllers()
		if err != nil || len(list) < 3 {
			t.Fatalf("%d controllers, %v", len(list), err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestAttributesAreWritten(t *testing.T) {
	tree := host(t)
	c, err := tree.Controller(0)
	if err != nil {
		t.Fatal(err)
	}
	undo, err := tree.HurryReconnect(&c)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Delete(&c); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"reconnect_delay": "1", "ctrl_loss_tmo": "1800", "delete_controller": "1"} {
		if got, _ := tree.read(controllersDir, "nvme0", name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	if got, _ := tree.read(controllersDir, "nvme0", "reconnect_delay"); got != "10" {
		t.Errorf("reconnect_delay is %q when that is undone", got)
	}
	if err := tree.Delete(&Controller{Instance: 99}); err != nil {
		t.Errorf("a controller that is gone: %v", err)
	}
}

func TestRegistry(t *testing.T) {
	tree := host(t)
	for range 2 { // the second time over what is there
		if err := tree.Claim(5, "snsd"); err != nil {
			t.Fatal(err)
		}
	}
	if got := tree.Owner(5); got != "snsd" {
		t.Errorf("owner %q", got)
	}
	if got, _ := tree.read(registryDir, "nvme5", "seqnum"); got != "1234" {
		t.Errorf("seqnum %q", got)
	}
	entries, _ := os.ReadDir(tree.path(registryDir))
	if len(entries) != 2 {
		t.Errorf("%d entries: something temporary is left", len(entries))
	}
	if err := tree.Release(5); err != nil || tree.Owner(5) != "" {
		t.Errorf("released: %v, owner %q", err, tree.Owner(5))
	}
}

// An entry of ours ends with its controller, also where nobody told us that it went; those of
// others are theirs to remove.
func TestAnEntryEndsWithItsController(t *testing.T) {
	tree := host(t)
	at := tree.path(controllersDir, "nvme7")
	renew := func() { // under another inode
		if err := os.Rename(at, at+"-old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(at + "-old")
	}
	renew()
	if err := tree.Claim(7, "snsd"); err != nil {
		t.Fatal(err)
	}
	if err := tree.Tidy(); err != nil || tree.Owner(7) != "snsd" {
		t.Errorf("owner %q, %v", tree.Owner(7), err)
	}
	renew()
	if tree.Owner(7) != "" {
		t.Errorf("a later controller is of %q", tree.Owner(7))
	}
	foreign := tree.path(registryDir, "nvme8")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "owner"), []byte("stacd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := tree.Tidy(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tree.path(registryDir, "nvme7")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("our entry: %v", err)
	}
	if tree.Owner(8) != "stacd" {
		t.Errorf("the other's entry is of %q", tree.Owner(8))
	}
}

func TestConnectOptions(t *testing.T) {
	ten := 10
	c := Connect{Transport: "tcp", NQN: "nqn.x", Target: netip.MustParseAddrPort("10.1.1.2:4420"), Source: netip.MustParseAddr("10.1.1.1"), HostNQN: "nqn.h", HostID: "id", CtrlLoss: &ten, Flags: []string{"hdr_digest"}}
	const want = "nqn=nqn.x,transport=tcp,traddr=10.1.1.2,trsvcid=4420,host_traddr=10.1.1.1,hostnqn=nqn.h,hostid=id,ctrl_loss_tmo=10,hdr_digest"
	if got, err := c.options(); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []func(*Connect){
		func(c *Connect) { c.NQN = "nqn.x,duplicate_connect" }, // a name from the network is no option
		func(c *Connect) { c.NQN = "nqn\nx" },
		func(c *Connect) { c.NQN = "" },
		func(c *Connect) { c.NQN = strings.Repeat("n", 223) },
		func(c *Connect) { c.HostID = "" },
		func(c *Connect) { c.Flags = []string{"nqn=other"} },
		func(c *Connect) { c.Source = netip.MustParseAddr("2001:db8::1") },
		func(c *Connect) { c.Target = netip.AddrPort{} },
		func(c *Connect) { c.Transport, c.Iface = "rdma", "eth1" },
	} {
		b := c
		bad(&b)
		if got, err := b.options(); err == nil {
			t.Errorf("%q is taken", got)
		}
	}
}

func TestKernelOptionsAreRead(t *testing.T) {
	keys, err := host(t).Options()
	if err != nil || !slices.Contains(keys, "host_iface") {
		t.Errorf("%q, %v", keys, err)
	}
	for text, want := range map[string]int{"instance=3,cntlid=1\n": 3, "cntlid=1,instance=0": 0, "instance=-1": -1, "": -1, "x": -1} {
		got, err := parseInstance(text)
		if (err == nil) != (want >= 0) || err == nil && got != want {
			t.Errorf("%q gives %d, %v", text, got, err)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add("traddr=10.1.1.2,trsvcid=4420,host_traddr=10.1.1.1,src_addr=10.1.1.1")
	f.Add("host_iface=none,traddr=fe80::1%eth0,trsvcid=")
	f.Fuzz(func(t *testing.T, text string) {
		var c Controller
		if err := c.parseAddress(text); err == nil && c.Target.Addr().Is4In6() {
			t.Fatalf("%q gives %v", text, c.Target)
		}
	})
}

func TestServedPortsAreRead(t *testing.T) {
	tree := plant(t, map[string]string{
		"sys/kernel/config/nvmet/ports/1/addr_trtype": "tcp\n", "sys/kernel/config/nvmet/ports/1/addr_traddr": "192.0.2.7\n", "sys/kernel/config/nvmet/ports/1/addr_trsvcid": "4420\n",
		"sys/kernel/config/nvmet/ports/1/subsystems/nqn.a": "", "sys/kernel/config/nvmet/ports/1/subsystems/nqn.2014-08.org.nvmexpress.discovery": "",
		"sys/kernel/config/nvmet/ports/2/addr_trtype": "tcp\n", "sys/kernel/config/nvmet/ports/2/addr_traddr": "192.0.2.8\n", "sys/kernel/config/nvmet/ports/2/addr_trsvcid": "4420\n",
		"sys/kernel/config/nvmet/ports/3/addr_trtype": "rdma\n", "sys/kernel/config/nvmet/ports/3/addr_traddr": "nowhere\n", "sys/kernel/config/nvmet/ports/3/addr_trsvcid": "4420\n",
		"sys/kernel/config/nvmet/ports/4/addr_trtype": "fc\n",
	})
	got, err := tree.Served()
	want := Served{Transport: "tcp", Addr: netip.MustParseAddr("192.0.2.7"), Port: 4420, Subsystems: []string{"nqn.a"}}
	if len(got) != 1 || got[0].Addr != want.Addr || got[0].Port != want.Port || !slices.Equal(got[0].Subsystems, want.Subsystems) {
		t.Errorf("%+v", got)
	}
	if err == nil || !strings.Contains(err.Error(), "ports/3") {
		t.Error(err)
	}
	if got, err := (Tree{Root: t.TempDir()}).Served(); len(got) != 0 || err != nil {
		t.Errorf("without nvmet: %v, %v", got, err)
	}
}

func TestExclusions(t *testing.T) {
	tree := plant(t, map[string]string{
		"etc/nvme/exclusions.conf":          "# mine\nexclusion = traddr=10.0.0.9\n[exclusions]\nexclusion = transport=tcp;traddr=::ffff:192.0.2.7\nexclusion = colour=red;nqn=nqn.x\n[other]\nexclusion = nqn=nqn.y\n",
		"etc/nvme/exclusions.conf.d/a.conf": "[exclusions]\nexclusion = nqn=nqn.z; trsvcid = 4421\n",
	})
	x, err := tree.Exclusions()
	if err != nil || len(x) != 2 {
		t.Fatalf("%v, %v", x, err)
	}
	connect := func(nqn, target string) *Connect {
		return &Connect{Transport: "tcp", NQN: nqn, Target: netip.MustParseAddrPort(target), Source: netip.MustParseAddr("192.0.2.1")}
	}
	for c, want := range map[*Connect]bool{
		connect("nqn.x", "192.0.2.7:4420"): true, connect("nqn.x", "10.0.0.9:4420"): false, connect("nqn.y", "192.0.2.8:4420"): false,
		connect("nqn.z", "192.0.2.8:4421"): true, connect("nqn.z", "192.0.2.8:4420"): false,
	} {
		if x.Match(c) != want {
			t.Errorf("%s at %v: want %v", c.NQN, c.Target, want)
		}
	}
}

// What is missing of a host's identity is made once, and what is there stays as it is.
func TestIdentity(t *testing.T) {
	tree := plant(t, map[string]string{"sys/class/dmi/id/product_uuid": "6F8FF1A5-5A0E-4D5F-9B5E-000000000001\n"})
	first, err := tree.Identity()
	if err != nil || first.ID != "6f8ff1a5-5a0e-4d5f-9b5e-000000000001" || first.NQN != "nqn.2014-08.org.nvmexpress:uuid:"+first.ID {
		t.Errorf("%+v, %v", first, err)
	}
	if again, err := tree.Identity(); again != first || err != nil {
		t.Errorf("%+v, %v", again, err)
	}
	tree = plant(t, map[string]string{"etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:6f8ff1a5-5a0e-4d5f-9b5e-000000000002\n"}) // as the existing agent writes it
	made, err := tree.Identity()
	if _, bad := ParseID(made.ID); err != nil || bad != nil || made.NQN != "nqn.2014-08.org.nvmexpress:6f8ff1a5-5a0e-4d5f-9b5e-000000000002" {
		t.Errorf("%+v, %v", made, err)
	}
}

// What is there is checked before it is made permanent, and what many machines have is not taken.
func TestAnIdentityIsCheckedBeforeItIsWritten(t *testing.T) {
	const id, other = "6f8ff1a5-5a0e-4d5f-9b5e-000000000001", "6f8ff1a5-5a0e-4d5f-9b5e-000000000002"
	for _, c := range []struct{ what, dmi, nqn, id, wantID, warns, fails string }{
		{what: "all zero", dmi: "00000000-0000-0000-0000-000000000000"},
		{what: "all one", dmi: "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"},
		{what: "a placeholder", dmi: "03000200-0400-0500-0006-000700080009"},
		{what: "no UUID, as long as one", dmi: "To be filled by O.E.M., 36 bytes long"[:36]},
		{what: "a name, cut", dmi: id, nqn: uuidPrefix + id[:20], fails: "is cut or mistyped"},
		{what: "a name, cut before the number", nqn: uuidPrefix, fails: "is cut or mistyped"},
		{what: "no name", nqn: "host 1", fails: "is no NQN"},
		{what: "a number, cut", nqn: uuidPrefix + id, id: id[:30], fails: "is no UUID"},
		{what: "another name", dmi: id, nqn: "nqn.2026-01.org.example:host1", wantID: id},
		{what: "both", nqn: uuidPrefix + id, id: strings.ToUpper(id), wantID: strings.ToUpper(id)},
		{what: "both, and they differ", nqn: uuidPrefix + id, id: other, wantID: other, warns: "is not the UUID in hostnqn"},
		{what: "a name with a number of many", dmi: id, nqn: uuidPrefix + "00000000-0000-0000-0000-000000000000", wantID: id, warns: "many machines have"},
		{what: "a number of many", nqn: "nqn.2026-01.org.example:host1", id: "ffffffff-ffff-ffff-ffff-ffffffffffff", wantID: "ffffffff-ffff-ffff-ffff-ffffffffffff", warns: "many machines have"},
	} {
		files := map[string]string{}
		for name, text := range map[string]string{"sys/class/dmi/id/product_uuid": c.dmi, hostNQNFile: c.nqn, hostIDFile: c.id} {
			if text != "" {
				files[name] = text + "\n"
			}
		}
		tree := plant(t, files)
		i, err := tree.Identity()
		if c.fails != "" {
			_, there := tree.read(hostIDFile)
			if err == nil || !strings.Contains(err.Error(), c.fails) || c.id == "" && !errors.Is(there, fs.ErrNotExist) {
				t.Errorf("%s: %v; hostid: %v", c.what, err, there)
			}
			continue
		}
		if err != nil || !isUUID(i.ID) || c.wantID == "" && (lazyUUID(i.ID) || i.NQN != uuidPrefix+i.ID) || c.wantID != "" && i.ID != c.wantID ||
			c.warns == "" != (i.Doubt() == "") || !strings.Contains(i.Doubt(), c.warns) {
			t.Errorf("%s: %+v, %v", c.what, i, err)
		}
		if again, err := tree.Identity(); err != nil || again != i {
			t.Errorf("%s: again %+v, %v", c.what, again, err)
		}
	}
}

func TestEventsOfTheKernelAreRead(t *testing.T) {
	e, ok := parseEvent([]byte("change@/devices/virtual/nvme-fabrics/ctl/nvme3\x00ACTION=change\x00SUBSYSTEM=nvme\x00NVME_EVENT=connected\x00DEVNAME=nvme3\x00SEQNUM=7\x00"))
	if !ok || e.Action != "change" || e.Name != "nvme3" || e.Fields["NVME_EVENT"] != "connected" {
		t.Errorf("%+v, %v", e, ok)
	}
	for _, other := range []string{"", "libudev\x00x", "add@/x\x00SUBSYSTEM=block\x00DEVNAME=sda\x00", "add@/x\x00SUBSYSTEM=nvme\x00"} {
		if e, ok := parseEvent([]byte(other)); ok {
			t.Errorf("%q: %+v", other, e)
		}
	}
}

// What a kernel does not know is not asked of it; one that does not say what it knows is asked all.
func TestOptionsThatAreNotKnownAreLeftOut(t *testing.T) {
	n := 7
	c := Connect{ToS: &n, QueueSize: &n, Iface: "eth1", Flags: []string{"hdr_digest", "data_digest"}}
	if left := c.Only(nil); left != nil || c.ToS == nil {
		t.Errorf("%v", left)
	}
	if left := c.Only([]string{"queue_size", "hdr_digest"}); !slices.Equal(left, []string{"data_digest", "host_iface", "tos"}) || c.ToS != nil || c.QueueSize == nil || c.Iface != "" || !slices.Equal(c.Flags, []string{"hdr_digest"}) {
		t.Errorf("%v %+v", left, c)
	}
}
