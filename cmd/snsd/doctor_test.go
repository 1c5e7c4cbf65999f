package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// diagnosis is what doctor says of a host with these files.
func diagnosis(t *testing.T, files map[string]string, canDestroy error) string {
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
	var b strings.Builder
	for _, a := range diagnose(hostkernel.Tree{Root: root}, func() error { return canDestroy }) {
		b.WriteString(a.Level + " " + a.Text + "\n")
	}
	return b.String()
}

func TestDoctorSaysWhatStandsInTheWay(t *testing.T) {
	if got := diagnosis(t, nil, nil); !strings.Contains(got, "bad this kernel has no NVMe") {
		t.Error(got)
	}
	files := map[string]string{"sys/module/nvme_core/parameters/multipath": "Y\n", "sys/module/nvme_core/parameters/io_timeout": "30\n", "sys/module/nvme_core/parameters/admin_timeout": "60\n",
		"dev/nvme-fabrics": "instance=-1,cntlid=-1,transport=%s,traddr=%s\n"}
	for name, address := range map[string]string{"nvme0": "traddr=192.0.2.7,trsvcid=4420,host_traddr=192.0.2.1", "nvme1": "traddr=198.51.100.7,trsvcid=4420,host_traddr=198.51.100.1"} {
		for file, text := range map[string]string{"transport": "tcp", "state": "live", "subsysnqn": "nqn.x", "address": address, "cntrltype": "io", "ctrl_loss_tmo": "600", "fast_io_fail_tmo": "off", "kato": "5"} {
			files["sys/class/nvme/"+name+"/"+file] = text + "\n"
		}
	}
	got := diagnosis(t, files, nil)
	for _, want := range []string{"ok native multipath", "ok sockets can", "knows 4 connect options", "nvme0: ctrl_loss_tmo 600", "nvme1: fast_io_fail_tmo off", "io_timeout 30", "admin_timeout 60"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "bad") || strings.Contains(got, "kato") {
		t.Error(got)
	}
	const host = "nqn.2014-08.org.nvmexpress:uuid:6f8ff1a5-5a0e-4d5f-9b5e-000000000001"
	for _, c := range [][3]string{{host, host[len(host)-36:], "ok hostnqn and hostid name one host"}, {host, "6f8ff1a5-5a0e-4d5f-9b5e-000000000002", "hint hostid 6f8ff1a5-5a0e-4d5f-9b5e-000000000002 is not the UUID in hostnqn"},
		{host[:50], "", "bad /etc/nvme/hostnqn"}} {
		if files["etc/nvme/hostnqn"], files["etc/nvme/hostid"] = c[0]+"\n", c[1]+"\n"; !strings.Contains(diagnosis(t, files, nil), c[2]) {
			t.Errorf("%q is missing in\n%s", c[2], diagnosis(t, files, nil))
		}
	}
	delete(files, "etc/nvme/hostnqn")
	delete(files, "etc/nvme/hostid")
	files["sys/module/nvme_core/parameters/multipath"] = "N\n"
	files["sys/class/nvme/nvme1/address"] = "traddr=198.51.100.7,trsvcid=4420,host_traddr=192.0.2.1\n"
	got = diagnosis(t, files, hostkernel.ErrNoDestroy)
	for _, want := range []string{"bad native multipath is off", "bad sockets cannot be destroyed", "bad nqn.x has paths from one address"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestDoctorSpeaksToPeopleAndPrograms(t *testing.T) {
	found := []advice{{"ok", "native multipath is on"}, {"bad", "it is not"}}
	for format, want := range map[string]string{
		"text": "ok   native multipath is on\nbad  it is not\n",
		"json": `[{"level":"ok","text":"native multipath is on"},{"level":"bad","text":"it is not"}]` + "\n",
	} {
		var b strings.Builder
		if err := prescribe(&b, format, found); err == nil || b.String() != want {
			t.Errorf("%s: %q, %v", format, b.String(), err)
		}
		if err := prescribe(&b, format, found[:1]); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
	if err := prescribe(&strings.Builder{}, "xml", found); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Error(err)
	}
}

// Doctor says of each path how it can be fenced, what that means, and what keeps notices from being
// heard.
func TestDoctorSaysHowPathsAreFenced(t *testing.T) {
	said := func(f *foresight, err error) string {
		var b strings.Builder
		for _, a := range adviseFences(f, err) {
			b.WriteString(a.Level + " " + a.Text + "\n")
		}
		return b.String()
	}
	got := said(&foresight{
		Mode: "observe", Fence: hostagent.FencePrefer, Ports: []hostagent.PortStatus{{Interface: "eth1", Warnings: []string{"no LLDP"}}},
		Controllers: []hostagent.Foresight{
			{Controller: "nvme0", Level: snsd.FenceArray, Way: snsd.FenceByTarget, Stall: "some 50 ms", Data: "kept"},
			{Controller: "nvme1", Level: snsd.FenceNone, Lacks: []string{"the switch did not announce fences"}},
		},
	}, nil)
	for _, want := range []string{"hint mode: observe", "bad eth1: no LLDP", "ok nvme0 (", "fenced: array by target at best, fence: prefer. Stall: some 50 ms. Data: kept", "hint nvme1 (", "not fenced at best", "hint nvme1: the switch did not"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := said(&foresight{}, errors.New("it does not run")); got != "hint fences: it does not run\n" {
		t.Error(got)
	}
}
