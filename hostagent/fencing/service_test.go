package fencing

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// Addresses of this machine's loopback: two of a host, two of an array.
var (
	loHost1, loHost2   = netip.MustParseAddr("127.0.51.1"), netip.MustParseAddr("127.0.52.1")
	loArray1, loArray2 = netip.MustParseAddr("127.0.51.2"), netip.MustParseAddr("127.0.52.2")
	loLost             = Path{loHost1, loArray1}
)

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// authority makes certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(t, template, "ca")
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, by := template, key
	if a.cert != nil {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// issue makes a certificate for some addresses, and the configuration that uses it.
func (a *authority) issue(t *testing.T, name string, addrs ...netip.Addr) hostagent.FenceServiceConfig {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	for _, addr := range addrs {
		template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
	}
	a.sign(t, template, name)
	file := func(f string) string { return filepath.Join(a.dir, f) }
	return hostagent.FenceServiceConfig{Certificate: file(name + ".crt"), Key: file(name + ".key"), CA: file("ca.crt")}
}

// array is a Service at an address of the loopback.
type array struct {
	kernel  *fakeKernel
	target  *Target
	service *Service
	port    uint16
	mu      sync.Mutex
	events  []Event
}

func startArray(t *testing.T, cfg hostagent.FenceServiceConfig) *array {
	t.Helper()
	creds, err := NewCredentials(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := &array{kernel: newFakeKernel()}
	a.kernel.open = map[Path]int{loLost: 2, {loHost2, loArray2}: 2}
	ctx, cancel := context.WithCancel(context.Background())
	report := func(e Event) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.events = append(a.events, e)
	}
	a.target = NewTarget(ctx, loKernel{a.kernel}, 20*time.Second, report)
	a.service = NewService(a.target, creds, report)
	ln, err := net.Listen("tcp", netip.AddrPortFrom(loArray2, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	a.port = uint16(ln.Addr().(*net.TCPAddr).Port)
	done := make(chan error, 1)
	go func() { done <- a.service.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		a.target.Wait()
	})
	return a
}

// loKernel serves at the addresses of the loopback.
type loKernel struct{ *fakeKernel }

func (k loKernel) Serves(a netip.Addr) error {
	if a != loArray1 && a != loArray2 {
		return refuse(CodeUnknown, "this machine's kernel serves no subsystem at %v", a)
	}
	return nil
}

func (a *array) asker(t *testing.T, cfg hostagent.FenceServiceConfig) *Asker {
	t.Helper()
	creds, err := NewCredentials(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &Asker{Credentials: creds, Port: a.port, KeepAlive: func(*hostkernel.Controller) time.Duration { return 5 * time.Second }}
}

func controller(host, array netip.Addr) hostkernel.Controller {
	return hostkernel.Controller{State: hostkernel.Live, Transport: "tcp", Source: host, Target: netip.AddrPortFrom(array, 4420)}
}

// loPair is the lost path, beside one that lives.
func loPair() hostagent.FencePair {
	return hostagent.FencePair{Host: loHost1, Array: loArray1, Controllers: []hostkernel.Controller{controller(loHost1, loArray1)},
		Living: []hostkernel.Controller{controller(loHost1, loArray1), controller(loHost2, loArray2)}}
}

// identities are the two ways to prove who one is: the array's configuration and the host's.
func identities(t *testing.T) map[string][2]hostagent.FenceServiceConfig {
	ca := newAuthority(t)
	secret := secretFile(t, "a secret of thirty-two characters\n")
	return map[string][2]hostagent.FenceServiceConfig{
		"certificate": {ca.issue(t, "array", loArray1, loArray2), ca.issue(t, "host", loHost1, loHost2)},
		"secret": {{Hosts: []hostagent.FenceHostConfig{
			{KeyFile: secretFile(t, "another host's secret of its own"), Addresses: []netip.Addr{netip.MustParseAddr("127.0.51.9")}},
			{KeyFile: secret, Addresses: []netip.Addr{loHost1, loHost2}}}}, {KeyFile: secret}},
	}
}

// A host has its lost path fenced over the living one, and confirms, with each kind of identity.
func TestHostAsksArray(t *testing.T) {
	for name, id := range identities(t) {
		t.Run(name, func(t *testing.T) {
			a := startArray(t, id[0])
			host := a.asker(t, id[1])
			if err := (Fencers{host}).Check(t.Context(), loPair()); err != nil {
				t.Fatal(err)
			}
			got, err := Fencers{host}.Fence(t.Context(), loPair(), func() {})
			if err != nil || got.Level != snsd.FenceArray || got.Way != snsd.FenceByTarget || got.Hold != 17*time.Second {
				t.Fatalf("%+v: %v", got, err)
			}
			if !a.kernel.blocked(loLost) || a.kernel.order() != "block end" {
				t.Errorf("blocked %t; steps: %s", a.kernel.blocked(loLost), a.kernel.order())
			}
			if err := (Fencers{host}).Confirm(t.Context(), loPair()); err != nil {
				t.Fatal(err)
			}
			a.target.Wait()
			if a.kernel.blocked(loLost) {
				t.Error("blocked although the host confirmed")
			}
		})
	}
}

// A caller has only paths of its own proven addresses fenced, and only from one of them; whoever has
// no identity does not get that far.
func TestForeignPathsAreDenied(t *testing.T) {
	for name, id := range identities(t) {
		t.Run(name, func(t *testing.T) {
			a := startArray(t, id[0])
			host := a.asker(t, id[1])
			foreign := loPair()
			foreign.Host = netip.MustParseAddr("127.0.51.7")
			if _, err := host.Fence(t.Context(), foreign, func() {}); code(err) != CodeDenied {
				t.Errorf("of another host: %v", err)
			}
			from := loPair()
			from.Living = []hostkernel.Controller{controller(netip.MustParseAddr("127.0.52.7"), loArray2)}
			if _, err := host.Fence(t.Context(), from, func() {}); code(err) != CodeDenied {
				t.Errorf("from another address: %v", err)
			}
			elsewhere := loPair()
			elsewhere.Array = netip.MustParseAddr("127.0.51.3")
			if _, err := host.Fence(t.Context(), elsewhere, func() {}); code(err) != CodeUnknown {
				t.Errorf("to another array: %v", err)
			}
			strangers := map[string]hostagent.FenceServiceConfig{
				"another authority": newAuthority(t).issue(t, "host", loHost1, loHost2),
				"another secret":    {KeyFile: secretFile(t, "not the secret that the array has")},
			}
			for who, cfg := range strangers {
				if got, err := a.asker(t, cfg).Fence(t.Context(), loPair(), func() {}); err == nil {
					t.Errorf("%s: fenced: %+v", who, got)
				}
			}
			if o := a.kernel.order(); o != "" {
				t.Errorf("steps: %s", o)
			}
			// The array refuses a stranger's identity after the stranger's part of the handshake.
			waitFor(t, func() bool { return a.service.Counters().Handshakes > 0 })
			if c := a.service.Counters(); c.Denied != 2 {
				t.Errorf("counters %+v", c)
			}
		})
	}
}

// An array that is not the one with the host's secret, or whose certificate is of another address,
// is not believed.
func TestFalseArrayIsNotBelieved(t *testing.T) {
	ca := newAuthority(t)
	a := startArray(t, ca.issue(t, "array", netip.MustParseAddr("127.0.51.99")))
	host := a.asker(t, ca.issue(t, "host", loHost1, loHost2))
	if _, err := host.Fence(t.Context(), loPair(), func() {}); err == nil || !strings.Contains(err.Error(), "identity") {
		t.Error(err)
	}
}

// Callers that say nothing, too much or nonsense are turned away, and do not keep others out.
func TestHostileCallers(t *testing.T) {
	id := identities(t)["secret"]
	a := startArray(t, id[0])
	host := a.asker(t, id[1])
	dial := func(from netip.Addr) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		c, err := d.Dial("tcp", netip.AddrPortFrom(loArray2, a.port).String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	cfg, err := host.Credentials.client(loArray2)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{
		{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, append([]byte{0, 0, 0, 2}, "[]"...), append([]byte{0, 0, 0, 2}, "{}"...),
	} {
		c := tls.Client(dial(loHost2), cfg)
		if _, err := c.Write(body); err != nil {
			t.Fatal(err)
		}
		if _, err := readAnswer(c); code(err) != CodeRequest {
			t.Errorf("%x: %v", body, err)
		}
		c.Close()
	}
	for range maxPerAddress { // silent: they hold their places
		dial(netip.MustParseAddr("127.0.52.200"))
	}
	waitFor(t, func() bool { return a.service.Counters().Connections == 4+maxPerAddress })
	more := dial(netip.MustParseAddr("127.0.52.200"))
	if _, err := more.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && err == nil {
		t.Errorf("one address has more than %d connections", maxPerAddress)
	}
	if _, err := host.Fence(t.Context(), loPair(), func() {}); err != nil {
		t.Errorf("beside them: %v", err)
	}
	if c := a.service.Counters(); c.Malformed != 4 || c.TooMany != 1 {
		t.Errorf("counters %+v", c)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}

// A host knows at once that the array is at it. One that gives up waiting gets an error, and the fence
// goes on: asked again it is there.
func TestHostGivesUpAndAsksAgain(t *testing.T) {
	id := identities(t)["secret"]
	a := startArray(t, id[0])
	host := a.asker(t, id[1])
	release := time.Now().Add(400 * time.Millisecond)
	a.kernel.executes[loLost] = release
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := host.Fence(ctx, loPair(), func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("in time: %v", err)
	}
	a.kernel.mu.Lock()
	release = time.Now().Add(time.Hour)
	a.kernel.executes[loLost] = release
	a.kernel.mu.Unlock()
	got, err := host.Fence(t.Context(), loPair(), func() { // while it executes
		a.kernel.mu.Lock()
		defer a.kernel.mu.Unlock()
		release = time.Now()
		a.kernel.executes[loLost] = release
	})
	if err != nil || time.Now().Before(release) || got.Level != snsd.FenceArray {
		t.Errorf("%+v: %v", got, err)
	}
}

// A secret that others may read, or that is short, is refused with what to do.
func TestSecretsAreChecked(t *testing.T) {
	open := secretFile(t, "a secret of thirty-two characters")
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{open: "chmod 600", secretFile(t, "short"): "want 16..", "/nonexistent": "no such file", t.TempDir(): "only its owner"} {
		if _, err := NewCredentials(hostagent.FenceServiceConfig{KeyFile: file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// Requests on the wire, byte for byte, and what is wrong with others.
func TestRequests(t *testing.T) {
	var b bytes.Buffer
	q := request{Version: 1, Op: OpFence, Host: host1, Array: array1, KeepAliveMS: 5000}
	if err := writeMessage(&b, q); err != nil {
		t.Fatal(err)
	}
	const golden = "\x00\x00\x00\x57" + `{"version":1,"op":"fence","host":"10.1.1.1","array":"10.1.1.2","keep-alive-ms":5000}`
	if want := golden[:3] + string(rune(len(golden)-4)) + golden[4:]; b.String() != want {
		t.Errorf("%q\nwant %q", b.String(), want)
	}
	if got, err := readRequest(&b); err != nil || got != q {
		t.Errorf("%+v: %v", got, err)
	}
	for _, bad := range []request{
		{Version: 2, Op: OpFence, Host: host1, Array: array1},
		{Version: 1, Op: "x", Host: host1, Array: array1},
		{Version: 1, Op: OpFence, Host: host1, Array: host1},
		{Version: 1, Op: OpFence, Host: host1, Array: netip.MustParseAddr("fd00::1")},
		{Version: 1, Op: OpFence, Host: netip.MustParseAddr("fe80::1%lo"), Array: netip.MustParseAddr("fd00::1")},
		{Version: 1, Op: OpFence, Host: netip.MustParseAddr("224.0.0.1"), Array: array1},
		{Version: 1, Op: OpFence, Host: host1},
		{Version: 1, Op: OpFence, Host: host1, Array: array1, KeepAliveMS: -1},
		{Version: 1, Op: OpFence, Host: host1, Array: array1, KeepAliveMS: 1 << 40},
	} {
		b.Reset()
		if err := writeMessage(&b, bad); err != nil {
			t.Fatal(err)
		}
		if got, err := readRequest(&b); code(err) != CodeRequest {
			t.Errorf("%+v: %v", got, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x3c" + `{"version":1,"op":"fence","host":"10.1.1.1","array":"10.1.1.2"}`))
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		q, err := readRequest(r)
		if used := len(b) - r.Len(); used > 4+maxMessage {
			t.Fatalf("%d bytes read", used)
		}
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeMessage(&out, q); err != nil {
			t.Fatal(err)
		}
		if again, err := readRequest(&out); err != nil || again != q {
			t.Fatalf("%+v, then %+v: %v", q, again, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x1b" + `{"version":1,"took-ms":300}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := readAnswer(bytes.NewReader(b)); err == nil && (a.Version != Version || a.TookMS < 0 || a.HoldMS < 0) {
			t.Fatalf("%+v", a)
		}
	})
}
