package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/testbed/labtest"
)

// Where the flooded switch listens.
const (
	floodHTTP, floodGNMI, floodNetconf = tor1ID + ":19518", tor1ID + ":9339", tor1ID + ":830"

	servers = 4 // of syslog

	viewerToken, operatorToken = "who only looks", "who changes zones"
)

// flood is a switch whose listeners are all open, and peers that do it no good.
type flood struct {
	*fab
	roots *x509.CertPool
	stop  chan struct{}
	peers sync.WaitGroup
}

// Peers that are slow, silent, huge, malformed or unknown, at gNMI, NETCONF and HTTP at once,
// beside syslog servers that read nothing, talk back or hang up: each is refused as its protocol
// says, and counted; no memory or descriptor stays with them, a fault is told to all whom it
// concerns meanwhile, and who may come in does.
func TestAFloodAtAllListenersIsRefusedAndCounted(t *testing.T) {
	f := newFlood(t)
	process, err := f.lab.Process("tor1", "inofd")
	if err != nil {
		t.Fatal(err)
	}
	sum := func(names ...string) (n uint64) {
		for _, name := range names {
			n += f.counter("tor1", name)
		}
		return n
	}
	f.welcome()
	before, small := sockets(t, process.PID), memory(t, process.PID, "VmRSS")

	silent := f.silent()
	for i, a := range f.attacks() {
		f.peers.Go(func() { f.attack(fmt.Sprintf("127.0.1.%d", 1+i), a) })
	}
	done := sync.OnceFunc(func() { close(f.stop); f.peers.Wait() })
	t.Cleanup(done)
	for _, counted := range []string{
		"http.no_login", "http.too_many", "http.not_allowed", "http.handshakes",
		"gnmi.no_login", "gnmi.too_many", "gnmi.not_allowed", "gnmi.handshakes", "gnmi.bad", "gnmi.streams",
		"netconf.no_login", "netconf.too_many", "netconf.not_allowed", "netconf.handshakes", "netconf.full", "netconf.not_netconf",
		"netconf.bad_hello", "netconf.bad_framing", "netconf.too_big", "netconf.malformed", "netconf.errors",
		"syslog_2.failed", "syslog_3.failed", "syslog_4.failed",
	} {
		f.awaitCounter("tor1", counted, 1)
	}
	f.awaitCounter("tor1", "http.not_allowed", 25) // they go on, as what goes on is refused
	f.awaitCounter("tor1", "gnmi.handshakes", 25)
	for range 2 { // in the midst of it
		f.stillTells()
	}
	f.welcome()
	done()
	for _, c := range silent {
		c.Close()
	}
	labtest.Eventually(t, "all that is left of them to go", func() error {
		// Each syslog server may have a connection now, or none.
		if now := sockets(t, process.PID); now > before+servers || sum("gnmi.streams", "netconf.open") != 0 {
			return fmt.Errorf("%d sockets, %d before; %d streams and sessions", now, before, sum("gnmi.streams", "netconf.open"))
		}
		return nil
	})
	// What was sent by any of them alone would be more; the race detector multiplies all of it.
	most := memory(t, process.PID, "VmHWM")
	t.Logf("%d MB before, %d MB at most; %d refused", small>>20, most>>20,
		sum("http.no_login", "http.too_many", "http.not_allowed", "http.handshakes", "gnmi.no_login", "gnmi.too_many", "gnmi.not_allowed", "gnmi.handshakes", "gnmi.bad",
			"netconf.no_login", "netconf.too_many", "netconf.not_allowed", "netconf.handshakes", "netconf.full"))
	if grown := most - small; grown > labtest.Memory(128<<20) {
		t.Errorf("it has grown by %d MB", grown>>20)
	}
	f.welcome()
	f.stillTells()
}

func newFlood(t *testing.T) *flood {
	certs, syslog := t.TempDir(), [servers]string{}
	ca := labtest.NewAuthority(t, "those who manage")
	ca.Issue(certs, tor1ID)
	digest := func(token string) string {
		b := sha256.Sum256([]byte(token))
		return hex.EncodeToString(b[:])
	}
	tokens := filepath.Join(certs, "tokens")
	err := os.WriteFile(tokens, []byte("look viewer "+digest(viewerToken)+"\nwork operator "+digest(operatorToken)+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range syslog {
		syslog[i] = fmt.Sprintf(`"tcp://127.0.0.1:%d"`, 6001+i)
	}
	f := &flood{roots: x509.NewCertPool(), stop: make(chan struct{})}
	f.roots.AppendCertsFromPEM(ca.PEM)
	f.fab = newFabric(t, spec{name: "flood", edit: map[string]func(string) string{"tor1": func(c string) string {
		c = strings.Replace(c, `management: {socket: "${INOF_NODE_RUN}/inofd.sock"}`, fmt.Sprintf(`management: {socket: "${INOF_NODE_RUN}/inofd.sock", http: %s, gnmi: %s, netconf: %s, certificate-file: %s, key-file: %s, token-file: %s}`,
			floodHTTP, floodGNMI, floodNetconf, filepath.Join(certs, "device.pem"), filepath.Join(certs, "device.key"), tokens), 1)
		return strings.Replace(c, "log: {level: debug}", "log: {level: info, syslog: {servers: ["+strings.Join(syslog[:], ", ")+"]}}", 1)
	}}})
	// The first reads nothing, the second talks back without end, the third hangs up; at the place
	// of the fourth there is none.
	for i, serve := range []func(net.Conn){func(net.Conn) {}, func(c net.Conn) { _, _ = io.Copy(c, noise{}) }, func(c net.Conn) { c.Close() }} {
		l := f.listenAt("tor1", fmt.Sprintf("127.0.0.1:%d", 6001+i))
		f.peers.Go(func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				defer c.Close()
				f.peers.Go(func() { serve(c) })
			}
		})
		go func() { <-f.stop; l.Close() }()
	}
	return f
}

// noise reads as bytes without end that mean nothing.
type noise struct{}

func (noise) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(7*i+len(b)) | 0x80
	}
	return len(b), nil
}

// listenAt listens in a node.
func (f *fab) listenAt(node, addr string) net.Listener {
	f.t.Helper()
	var l net.Listener
	err := f.lab.Do(node, func() (err error) {
		l, err = net.Listen("tcp4", addr)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { l.Close() })
	return l
}

// dialFrom connects within the switch, from an address of its own: log-ins that fail count by
// address.
func (f *flood) dialFrom(from, to string) (net.Conn, error) {
	var c net.Conn
	err := f.lab.Do("tor1", func() (err error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: labtest.Patience}
		c, err = d.Dial("tcp4", to)
		return err
	})
	if err == nil {
		err = c.SetDeadline(time.Now().Add(labtest.Patience))
	}
	return c, err
}

func (f *flood) tlsFrom(from, to string, protocols ...string) (net.Conn, error) {
	c, err := f.dialFrom(from, to)
	if err != nil {
		return nil, err
	}
	return tls.Client(c, &tls.Config{RootCAs: f.roots, ServerName: tor1ID, MinVersion: tls.VersionTLS12, NextProtos: protocols}), nil
}

// silent opens connections that say nothing, or end in the midst of a handshake.
func (f *flood) silent() (all []net.Conn) {
	f.t.Helper()
	hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3} // the first bytes of a ClientHello
	for _, to := range []string{floodHTTP, floodGNMI, floodNetconf} {
		for i := range 6 {
			c, err := f.dialFrom("127.0.2.1", to)
			if err != nil {
				f.t.Fatal(err)
			}
			if i%2 == 0 {
				_, _ = c.Write(hello) // NETCONF may have hung up
			}
			all = append(all, c)
		}
	}
	return all
}

// attack is what a peer does, again and again, and has to hear.
type attack struct {
	name string
	do   func(from string) (heard string, err error)
	want []string // one of them; none: whatever
}

func (f *flood) attack(from string, a attack) {
	for {
		heard, err := a.do(from)
		good := len(a.want) == 0
		for _, w := range a.want {
			good = good || strings.Contains(heard, w)
		}
		if !good {
			f.t.Errorf("%s: heard %.300q, %v; want one of %q", a.name, heard, err, a.want)
			return
		}
		select {
		case <-f.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (f *flood) attacks() []attack {
	gone := []string{""} // it is hung up on, and may be told why
	nineMB, known := strings.Repeat("x", 9<<20), ssh.Password(viewerToken)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		f.t.Fatal(err)
	}
	unknown := ssh.PublicKeys(signer)
	return []attack{
		{"HTTP: no TLS", f.raw(floodHTTP, "GET / HTTP/1.1\r\n\r\n"), gone},
		{"HTTP: noise", f.noise(floodHTTP), gone},
		{"HTTP: nobody", f.http("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"), []string{"HTTP/1.1 401 ", "HTTP/1.1 429 "}},
		{"HTTP: a wrong token", f.http("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n"), []string{"HTTP/1.1 401 ", "HTTP/1.1 429 "}},
		{"HTTP: a viewer changes a zone", f.http("POST /v1/zones HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + viewerToken + "\r\nContent-Length: 2\r\n\r\n{}"), []string{"HTTP/1.1 403 "}},
		{"HTTP: malformed", f.http("GET\x00 / what\r\n\r\n"), []string{"HTTP/1.1 400 "}},
		{"HTTP: headers of 9 MB", f.http("GET / HTTP/1.1\r\nHost: x\r\nX: " + nineMB), []string{"HTTP/1.1 431 ", ""}},
		{"HTTP: a body of 1 GB", f.http("POST /v1/zones HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + operatorToken + "\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n\"" + nineMB), []string{"HTTP/1.1 413 ", ""}},
		{"HTTP: a byte at a time", f.slow(floodHTTP), gone},
		{"gNMI: noise", f.noise(floodGNMI), gone},
		{"gNMI: no HTTP/2", f.over(floodGNMI, "h2", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), gone},
		{"gNMI: a frame of 16 MB", f.over(floodGNMI, "h2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x04\x00\x00\x00\x00\x00"+nineMB), gone},
		{"gNMI: nobody", f.gnmi("", func(ctx context.Context, c pb.GNMIClient) error {
			_, err := c.Capabilities(ctx, &pb.CapabilityRequest{})
			return err
		}), []string{codes.Unauthenticated.String(), codes.ResourceExhausted.String()}},
		{"gNMI: a viewer sets", f.gnmi(viewerToken, func(ctx context.Context, c pb.GNMIClient) error {
			_, err := c.Set(ctx, &pb.SetRequest{})
			return err
		}), []string{codes.PermissionDenied.String()}},
		{"gNMI: a request of 9 MB", f.gnmi(viewerToken, func(ctx context.Context, c pb.GNMIClient) error {
			_, err := c.Get(ctx, &pb.GetRequest{Path: []*pb.Path{{Origin: nineMB}}})
			return err
		}), []string{codes.ResourceExhausted.String()}},
		{"gNMI: a path that is none", f.gnmi(viewerToken, func(ctx context.Context, c pb.GNMIClient) error {
			_, err := c.Get(ctx, &pb.GetRequest{Path: []*pb.Path{{Elem: []*pb.PathElem{{Name: "nothing"}}}}})
			return err
		}), []string{codes.Unimplemented.String(), codes.InvalidArgument.String()}},
		{"gNMI: a subscriber that reads nothing", f.gnmi(viewerToken, f.subscribeAndSleep), []string{codes.OK.String()}},
		{"NETCONF: noise", f.noise(floodNetconf), gone},
		{"NETCONF: an unknown key", f.netconf("work", unknown, nil), []string{"handshake failed"}},
		{"NETCONF: after guesses elsewhere", func(from string) (string, error) {
			_, _ = f.http("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n")(from) // 401, or 429 after five
			return f.noise(floodNetconf)(from)
		}, gone},
		{"NETCONF: a shell", f.netconf("look", known, func(s *ssh.Session) (string, error) {
			err := s.Shell()
			return fmt.Sprint(err), err
		}), []string{"ssh: "}},
		{"NETCONF: bad framing", f.rpc("look", known, helloBoth, "\n#99999999999\n"), gone},
		{"NETCONF: a hello of another base", f.rpc("look", known, strings.ReplaceAll(helloBoth, "base:1.", "base:7."), ""), gone},
		{"NETCONF: a message of 9 MB", f.rpc("look", known, helloBoth, "\n#9437184\n"+nineMB), []string{"too-big", ""}},
		{"NETCONF: no rpc", f.rpc("look", known, helloBoth, chunk("<nothing/>")+"and no frame"), []string{"malformed-message"}},
		{"NETCONF: a viewer commits", f.rpc("look", known, helloBoth, chunk(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1"><commit/></rpc>`)+
			chunk(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="2"><close-session/></rpc>`)), []string{"access-denied"}},
	}
}

// raw sends bytes and reads until it is hung up on.
func (f *flood) raw(to, text string) func(string) (string, error) {
	return func(from string) (string, error) {
		c, err := f.dialFrom(from, to)
		if err != nil {
			return "", err
		}
		return exchange(c, text)
	}
}

// over is raw in TLS.
func (f *flood) over(to, protocol, text string) func(string) (string, error) {
	return func(from string) (string, error) {
		c, err := f.tlsFrom(from, to, protocol)
		if err != nil {
			return "", err
		}
		return exchange(c, text)
	}
}

func (f *flood) http(text string) func(string) (string, error) {
	return f.over(floodHTTP, "http/1.1", text)
}

func exchange(c net.Conn, text string) (string, error) {
	defer c.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(c, text) // it may be hung up on before the end
	}()
	b, err := io.ReadAll(io.LimitReader(c, 64<<10))
	c.Close()
	<-sent
	return string(b), err
}

// noise sends bytes that mean nothing until it is hung up on.
func (f *flood) noise(to string) func(string) (string, error) {
	return func(from string) (string, error) {
		c, err := f.dialFrom(from, to)
		if err != nil {
			return "", err
		}
		go func() { _, _ = io.Copy(c, io.LimitReader(noise{}, 1<<20)) }() // until it is hung up on
		return exchange(c, "")
	}
}

// slow begins a request a byte at a time until the end of the flood, or until it is hung up on.
func (f *flood) slow(to string) func(string) (string, error) {
	return func(from string) (string, error) {
		c, err := f.tlsFrom(from, to, "http/1.1")
		if err != nil {
			return "", err
		}
		defer c.Close()
		for i := 0; ; i++ {
			if _, err := c.Write([]byte("GET /aaaaaaaaaa"[i%15 : i%15+1])); err != nil {
				return "", err
			}
			select {
			case <-f.stop:
				return "", nil
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// gnmi asks by a connection of its own; heard is the code of the answer.
func (f *flood) gnmi(token string, ask func(context.Context, pb.GNMIClient) error) func(string) (string, error) {
	return func(from string) (string, error) {
		conn, err := grpc.NewClient("passthrough:"+floodGNMI, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: f.roots, ServerName: tor1ID, MinVersion: tls.VersionTLS12})),
			grpc.WithContextDialer(func(_ context.Context, addr string) (net.Conn, error) { return f.dialFrom(from, addr) }))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience)
		defer cancel()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		err = ask(ctx, pb.NewGNMIClient(conn))
		return status.Code(err).String(), err
	}
}

// subscribeAndSleep subscribes to everything and reads nothing of it until the end of the flood.
func (f *flood) subscribeAndSleep(ctx context.Context, c pb.GNMIClient) error {
	s, err := c.Subscribe(ctx)
	if err != nil {
		return err
	}
	err = s.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: &pb.SubscriptionList{
		Encoding: pb.Encoding_PROTO, Subscription: []*pb.Subscription{{Path: &pb.Path{}}}}}})
	if err == nil {
		_, err = s.Recv() // the first, and no more
	}
	<-f.stop
	return err
}

// netconf logs in over SSH, and does something with a session.
func (f *flood) netconf(user string, proof ssh.AuthMethod, do func(*ssh.Session) (string, error)) func(string) (string, error) {
	return func(from string) (string, error) {
		raw, err := f.dialFrom(from, floodNetconf)
		if err != nil {
			return err.Error(), err
		}
		defer raw.Close()
		c, channels, requests, err := ssh.NewClientConn(raw, floodNetconf, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{proof}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			return err.Error(), err
		}
		client := ssh.NewClient(c, channels, requests)
		defer client.Close()
		s, err := client.NewSession()
		if err != nil || do == nil {
			return fmt.Sprint(err), err
		}
		return do(s)
	}
}

const helloBoth = `<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities><capability>urn:ietf:params:netconf:base:1.1</capability></capabilities></hello>]]>]]>`

// chunk frames a message of base:1.1.
func chunk(message string) string { return fmt.Sprintf("\n#%d\n%s\n##\n", len(message), message) }

// rpc sends a hello and bytes in a session, and reads until it is hung up on.
func (f *flood) rpc(user string, proof ssh.AuthMethod, hello, text string) func(string) (string, error) {
	return f.netconf(user, proof, func(s *ssh.Session) (string, error) {
		in, err1 := s.StdinPipe()
		out, err2 := s.StdoutPipe()
		if err := errors.Join(err1, err2, s.RequestSubsystem("netconf")); err != nil {
			return "", err
		}
		go func() { _, _ = io.WriteString(in, hello+text) }() // it may be hung up on before the end
		b, err := io.ReadAll(io.LimitReader(out, 64<<10))
		return string(b), err
	})
}

// welcome is the proof that who may come in does, at each door.
func (f *flood) welcome() {
	f.t.Helper()
	for _, a := range []attack{
		{"HTTP", f.http("GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + viewerToken + "\r\n\r\n"), []string{"HTTP/1.1 200 "}},
		{"gNMI", f.gnmi(viewerToken, func(ctx context.Context, c pb.GNMIClient) error {
			_, err := c.Capabilities(ctx, &pb.CapabilityRequest{})
			return err
		}), []string{codes.OK.String()}},
		{"NETCONF", f.rpc("work", ssh.Password(operatorToken), helloBoth, chunk(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="7"><close-session/></rpc>`)), []string{"<ok/>"}},
	} {
		if heard, err := a.do("127.0.3.1"); !strings.Contains(heard, a.want[0]) {
			f.t.Errorf("%s: somebody who may come in hears %.300q, %v", a.name, heard, err)
		}
	}
}

// sockets counts those that a process has open.
func sockets(t testing.TB, pid int) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.HasPrefix(to, "socket:") { // it may be closed by now
			n++
		}
	}
	return n
}

// memory is a line of /proc/PID/status, in bytes.
func memory(t testing.TB, pid int, name string) int {
	t.Helper()
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/status", pid))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("process %d says no %s", pid, name)
	return 0
}
