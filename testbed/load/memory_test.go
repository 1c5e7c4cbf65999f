package load

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/netnstest"
	"github.com/openinof/inof/testbed/pki"
	"github.com/openinof/inof/zone"
)

// controlGroup makes a control group with a memory limit, of either version; join is its file of
// processes, peak that of the most memory it had.
func controlGroup(t *testing.T, limit int) (join, peak string) {
	t.Helper()
	name := fmt.Sprintf("inof-test-%d", os.Getpid())
	var errs []string
	for _, v := range []struct{ dir, limit, peak string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		dir := filepath.Join(v.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		t.Cleanup(func() {
			for range 100 { // its processes have just ended
				if os.Remove(dir) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%s is not removed", dir)
		})
		err := os.WriteFile(filepath.Join(dir, v.limit), fmt.Append(nil, limit), 0)
		if err == nil {
			return filepath.Join(dir, "cgroup.procs"), filepath.Join(dir, v.peak)
		}
		errs = append(errs, err.Error())
	}
	netnstest.Require(t, "a control group with a memory limit", fmt.Errorf("%s", strings.Join(errs, "; ")))
	return "", ""
}

// A client that hears of 4,096 hosts runs in a control group of 64 MiB: with TLS, and with the key
// of a password; with the password itself it is refused before the kernel would end it.
func TestAClientWith4096HostsRunsIn64MiB(t *testing.T) {
	join, peak := controlGroup(t, 64<<20)
	bin := filepath.Join(t.TempDir(), "inofd")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/openinof/inof/cmd/inofd").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id := netip.MustParseAddr("10.66.0.9")
	for _, c := range []struct{ name, auth, session, refused string }{
		{"tls", "tls", "auth: tls, certificate-file: %[1]s/cert.pem, key-file: %[1]s/key.pem, ca-file: %[1]s/ca.pem", ""},
		{"key of a password", "hmac-sha256", "password-key-file: %[1]s/password.key", ""},
		{"password", "hmac-sha256", "password-file: %[1]s/password", "session.auth hmac-sha256 needs 128 MiB of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := startReflector(t.Context(), testProcess(t), c.auth, zone.Set{}, "records-per-second: 1000000, records-burst: 1000000")
			if err != nil {
				t.Fatal(err)
			}
			defer o.close()
			dir := t.TempDir()
			if c.auth == "tls" {
				p, err := pki.Read(o.dir)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Write(dir, id); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{
				"password": ownPassword, "password.key": o.Password.KeyText(),
				"inofd.yaml": fmt.Sprintf(`device: {id: %s, roles: [client], allow-loopback: true}
client: {reflectors: [{address: %s, port: %d}], interest: all}
ports: {access: [no-such-port]}
session: {%s}
state-directory: %[5]s/state
management: {socket: %[5]s/inofd.sock}
`, id, o.Addr.Addr(), o.Addr.Port(), fmt.Sprintf(c.session, dir), dir),
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "-c", `echo $$ >"$1"; exec "$2" run -c "$3"`, "sh", join, bin, filepath.Join(dir, "inofd.yaml"))
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if c.refused != "" {
				select {
				case err := <-ended:
					if err == nil || !strings.Contains(log.String(), c.refused) {
						t.Errorf("%v\n%s", err, &log)
					}
				case <-time.After(time.Minute):
					_ = cmd.Process.Kill()
					t.Errorf("it runs\n%s", &log)
				}
				return
			}
			defer func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				if err := <-ended; err != nil {
					t.Errorf("%v\n%s", err, &log)
				}
				b, _ := os.ReadFile(peak)
				t.Logf("at most %s bytes, page cache included", bytes.TrimSpace(b))
			}()
			speak(t, o)
			cl := api.NewClient(filepath.Join(dir, "inofd.sock"))
			var st api.Status
			for end := time.Now().Add(20 * time.Second); st.Counts.HostsRemote != floodHosts; {
				select {
				case err := <-ended:
					ended <- err
					t.Fatalf("it has ended with %d hosts: %v", st.Counts.HostsRemote, err)
				case <-time.After(50 * time.Millisecond):
				}
				if got, err := api.Ask[api.Status](t.Context(), cl, "status", nil); err == nil {
					st = got
				} else if time.Now().After(end) {
					t.Fatal(err)
				}
				if time.Now().After(end) {
					t.Fatalf("%d hosts", st.Counts.HostsRemote)
				}
			}
			if m := st.Memory; m == nil || m.Limit != 64<<20 || m.Least > m.Limit {
				t.Errorf("%+v", m)
			}
		})
	}
}

// speak has a device announce the hosts, under one name after the other: what is collected only when as
// much again has been allocated does not fit.
func speak(t *testing.T, o *ownReflector) {
	t.Helper()
	p := &plan{devices: DefaultDevices, hosts: DefaultHosts}
	dev, _ := netip.ParseAddr("10.66.0.10")
	epoch := epochOf(time.Now())
	c, err := connect(context.Background(), &o.Target, dev, 0, epoch, newCrowd())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.reset)
	go c.run()
	for round := range 40 {
		halves := [2]*wire.Update{c.update(epoch), c.update(epoch)}
		for i := range floodHosts {
			u := halves[i%2]
			h := putHost(p.burstHost(i), dev, portAll, time.Now())
			h.Host.NQN += fmt.Sprint(round)
			u.Hosts = append(u.Hosts, h)
		}
		if err := c.send(halves[0], halves[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.send(&wire.EndOfSync{Epoch: epoch}); err != nil {
		t.Fatal(err)
	}
}
