package netconf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// fakeDevice is a Device with a Book and a log, as a reflector has them.
type fakeDevice struct {
	*api.EventLog
	mu    sync.Mutex
	book  *change.Book
	ports []string // what was done to ports
	deeds []api.Deed
	loss  string
	tree  func(path string) telemetry.Tree
	now   func() time.Time
}

func newDevice(t testing.TB) *fakeDevice {
	t.Helper()
	doc := change.Document{Zones: []change.Named{{Name: "a", Members: []string{"192.0.2.1", "192.0.2.2"}}, {Name: "b", Members: []string{"192.0.2.3"}}}}
	p, err := doc.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return &fakeDevice{EventLog: api.NewEventLog(100, time.Now()), book: change.NewBook(p, change.Meta{By: "zone file"}), now: time.Now,
		tree: func(string) telemetry.Tree { return nil }}
}

func (d *fakeDevice) HostsAt(context.Context, netip.Addr) ([]api.Host, error) { return nil, nil }
func (d *fakeDevice) ZoneVersions(context.Context) ([]api.ZoneVersion, error) { return nil, nil }
func (d *fakeDevice) ZonesAt(context.Context, uint64) (api.Zoning, error)     { return api.Zoning{}, nil }
func (d *fakeDevice) Telemetry(_ context.Context, path string) (telemetry.Tree, error) {
	return d.tree(path), nil
}

func (d *fakeDevice) version() api.ZoneVersion {
	v := d.book.Last()
	out := api.ZoneVersion{Number: v.Number, Base: v.Base, By: v.By, Comment: v.Comment}
	if p := d.book.Pending(); p != nil {
		out.Confirm = &p.Deadline
	}
	return out
}

func (d *fakeDevice) Zoning(context.Context) (api.Zoning, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return api.Zoning{Version: d.version(), Plan: d.book.Plan().Clone()}, nil
}

func (d *fakeDevice) CheckZones(_ context.Context, c api.ZoneCandidate) (api.ZoneReview, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := api.ZoneReview{Loss: d.loss, Impact: &zone.Impact{PairsBefore: 4, PairsLost: 1}}
	if err := d.book.Admit(c.Base, c.Extends); err != nil {
		r.Conflict = err.Error()
	}
	if err := c.Plan.Check(zone.Rules{}); err != nil {
		r.Errors = strings.Split(err.Error(), "\n")
	}
	delta := change.Diff(d.book.Plan(), c.Plan)
	r.Changes = delta.Lines(d.book.Plan(), 100)
	return r, nil
}

func (d *fakeDevice) CommitZones(ctx context.Context, c api.ZoneCandidate) (api.ZoneCommitted, error) {
	r, _ := d.CheckZones(ctx, c)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.Conflict != "":
		return api.ZoneCommitted{}, fmt.Errorf("%w: %s", api.ErrConflict, r.Conflict)
	case len(r.Errors) > 0:
		return api.ZoneCommitted{}, fmt.Errorf("%w: %s", api.ErrInvalid, strings.Join(r.Errors, "\n"))
	case r.Loss != "" && !c.Force:
		return api.ZoneCommitted{}, fmt.Errorf("%w: %s", api.ErrRefused, r.Loss)
	}
	o := change.Order{Delta: change.Diff(d.book.Plan(), c.Plan), Base: c.Base, Meta: change.Meta{By: api.By(ctx), Comment: c.Comment}, Extends: c.Extends}
	if c.Confirm > 0 {
		o.Deadline = d.now().Add(time.Duration(c.Confirm))
	}
	next := d.book.Clone() // who reads the plan of before goes on
	_, made, err := next.Commit(o)
	d.book = next
	return api.ZoneCommitted{Changed: made, Version: d.version()}, err
}

func (d *fakeDevice) SettleZones(ctx context.Context, number uint64, stay bool) (api.ZoneVersion, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	next := d.book.Clone()
	if stay {
		_, err = next.Confirm(number)
	} else {
		_, err = next.Abort(number, change.Meta{By: api.By(ctx)})
	}
	d.book = next
	if err != nil {
		err = fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	return d.version(), err
}

func (d *fakeDevice) at(do, port string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if port != "eth1" {
		return fmt.Errorf("%w: port %q", api.ErrNotFound, port)
	}
	d.ports = append(d.ports, do+" "+port)
	return nil
}

func (d *fakeDevice) ShutPort(_ context.Context, port string) error    { return d.at("shut", port) }
func (d *fakeDevice) RecoverPort(_ context.Context, port string) error { return d.at("recover", port) }
func (d *fakeDevice) Drain(_ context.Context, o api.DrainOrder) (api.Drained, error) {
	return api.Drained{}, d.at(fmt.Sprintf("drain undo=%v", o.Undo), o.Port)
}

func (d *fakeDevice) Audit(_ context.Context, x api.Deed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deeds = append(d.deeds, x)
}

// zones are the zones in force, one line each.
func (d *fakeDevice) zones() (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, z := range d.book.Plan().Document().Zones {
		out = append(out, z.Name+": "+strings.Join(z.Members, " "))
	}
	return out
}

// byCLI changes the zones beside NETCONF.
func (d *fakeDevice) byCLI(t testing.TB, name string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.book.Plan().Clone()
	next.PutZone(name, change.Zone{})
	if _, _, err := d.book.Commit(change.Order{Delta: change.Diff(d.book.Plan(), next), Meta: change.Meta{By: "root"}}); err != nil {
		t.Fatal(err)
	}
}

// twoWay is one end of a connection in memory: writes never wait.
type twoWay struct {
	in, out *buffer
}

type buffer struct {
	mu     sync.Mutex
	cond   *sync.Cond
	data   []byte
	closed bool
}

func newBuffer() *buffer {
	b := &buffer{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *buffer) close() {
	b.mu.Lock()
	b.closed = true
	b.cond.Broadcast()
	b.mu.Unlock()
}

func (w twoWay) Write(p []byte) (int, error) {
	w.out.mu.Lock()
	defer w.out.mu.Unlock()
	if w.out.closed {
		return 0, errors.New("closed")
	}
	w.out.data = append(w.out.data, p...)
	w.out.cond.Broadcast()
	return len(p), nil
}

func (w twoWay) Read(p []byte) (int, error) {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	for len(w.in.data) == 0 && !w.in.closed {
		w.in.cond.Wait()
	}
	if len(w.in.data) == 0 {
		return 0, errors.New("EOF")
	}
	n := copy(p, w.in.data)
	w.in.data = w.in.data[n:]
	return n, nil
}

func (w twoWay) Close() error {
	w.in.close()
	w.out.close()
	return nil
}

// client is the other end of a session.
type client struct {
	t  testing.TB
	p  io.Closer
	in *messages
	to sender
	n  int
	// ended is closed when the server has done with it.
	ended chan struct{}
	notes []*element
}

var anna = api.Visitor{Caller: api.Caller{Name: "anna", From: "192.0.2.77", Proof: "password"}, Role: api.Operator}

// dial begins a session with a server of no network.
func dial(t testing.TB, s *Server, who api.Visitor, capabilities ...string) *client {
	t.Helper()
	a, b := newBuffer(), newBuffer()
	p := twoWay{a, b}
	x := s.place(who)
	if x == nil {
		t.Fatal("no place")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.session(t.Context(), x, twoWay{b, a})
		a.close()
	}()
	c := greetServer(t, p, p, capabilities...)
	c.p, c.ended = p, ended
	return c
}

// greetServer reads the hello of a server and answers it.
func greetServer(t testing.TB, w io.Writer, r io.Reader, capabilities ...string) *client {
	t.Helper()
	c := &client{t: t, in: newMessages(r), to: sender{w: w}}
	hello := c.receive()
	if hello.name != "hello" || hello.child(nsBase, "session-id") == nil {
		t.Fatalf("%s instead of a hello", hello.name)
	}
	if len(capabilities) == 0 {
		capabilities = []string{capBase10, capBase11}
	}
	list := el(nsBase, "capabilities")
	for _, name := range capabilities {
		list.kids = append(list.kids, leafOf(nsBase, "capability", name))
	}
	c.write(el(nsBase, "hello", list))
	if slices.Contains(capabilities, capBase11) {
		c.in.chunked, c.to.chunked = true, true
	}
	return c
}

func (c *client) write(e *element) {
	c.t.Helper()
	if err := c.to.send(e); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) receive() *element {
	c.t.Helper()
	m, err := c.in.next()
	if err != nil {
		c.t.Fatalf("nothing is received: %v", err)
	}
	e, err := decode(m)
	if err != nil {
		c.t.Fatalf("%v: %s", err, m)
	}
	return e
}

// rpc sends an operation in XML and gives the reply; what comes before it is in notes.
func (c *client) rpc(operation string) *element {
	c.t.Helper()
	c.n++
	c.raw(fmt.Sprintf(`<rpc xmlns="%s" message-id="%d">%s</rpc>`, nsBase, c.n, operation))
	for {
		r := c.receive()
		if r.name == "notification" {
			c.notes = append(c.notes, r)
			continue
		}
		if id, _ := r.attr("", "message-id"); r.name != "rpc-reply" || id != fmt.Sprint(c.n) {
			c.t.Fatalf("%s of message %q", r.name, id)
		}
		return r
	}
}

// raw sends a message of any text.
func (c *client) raw(text string) {
	c.t.Helper()
	if c.to.chunked {
		text = fmt.Sprintf("\n#%d\n%s\n##\n", len(text), text)
	} else {
		text += endOfMessage
	}
	if _, err := io.WriteString(c.to.w, text); err != nil {
		c.t.Fatal(err)
	}
}

// begin sends the first chunk of a message.
func (c *client) begin(text string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.to.w, "\n#%d\n%s", len(text), text); err != nil {
		c.t.Fatal(err)
	}
}

// ok wants an operation to be done.
func (c *client) ok(operation string) {
	c.t.Helper()
	if r := c.rpc(operation); r.child(nsBase, "ok") == nil {
		c.t.Fatalf("%s: %s", operation, text(r))
	}
}

// fails wants an error and gives its path and message.
func (c *client) fails(operation, tag string) (path, message string) {
	c.t.Helper()
	e := c.rpc(operation).child(nsBase, "rpc-error")
	if e == nil {
		c.t.Fatalf("%s is done, want %s", operation, tag)
	}
	if got := e.child(nsBase, "error-tag").value(); got != tag {
		c.t.Fatalf("%s: %s, want %s", operation, text(e), tag)
	}
	if p := e.child(nsBase, "error-path"); p != nil {
		path = p.value()
	}
	return path, e.child(nsBase, "error-message").value()
}

// text is an element as it is sent.
func text(e *element) string {
	var b strings.Builder
	s := sender{w: &b}
	var plain func(e *element) *element
	plain = func(e *element) *element { // as decode gives it, without the words of namespaces
		out := *e
		out.attrs, out.kids = nil, nil
		for _, a := range e.attrs {
			if a.Name.Space == "" && a.Name.Local != "xmlns" || a.Name.Space == "xmlns" {
				out.attrs = append(out.attrs, a)
			}
		}
		for _, k := range e.kids {
			out.kids = append(out.kids, plain(k))
		}
		return &out
	}
	if err := s.send(plain(e)); err != nil {
		return err.Error()
	}
	_, out, _ := strings.Cut(strings.TrimSuffix(b.String(), endOfMessage), "?>")
	return out
}
