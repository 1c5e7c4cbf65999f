package netconf

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/internal/api"
)

// Times of a session.
const (
	helloTime   = 30 * time.Second // until the hello of a client is there
	messageTime = time.Minute      // from the first byte of a message to its last
	stuckTime   = time.Minute      // for which a client may take nothing
)

// maxMalformed is how many messages in a row may be none.
const maxMalformed = 10

// pipe is what a session talks over.
type pipe interface {
	io.ReadWriter
	// Close ends both directions at once, whoever waits.
	Close() error
}

// session is one client.
type session struct {
	srv   *Server
	id    uint32
	who   api.Visitor
	pipe  pipe
	since time.Time
	in    *messages
	late  *time.Timer // closes the pipe where a message does not come to its end

	out  sync.Mutex // one message at a time
	send sender

	counts    sessionCounts
	following atomic.Bool // there is a subscription
	closing   bool
}

// sessionCounts are what ietf-netconf-monitoring shows of a session.
type sessionCounts struct {
	sync.Mutex
	rpcs, bad, errors, notifications uint64
}

func (s *session) count(n *uint64) {
	s.counts.Lock()
	*n++
	s.counts.Unlock()
}

// run talks with the client until one of both ends it.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(api.As(ctx, s.who))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.pipe.Close() })
	defer stop()
	var followers sync.WaitGroup
	last := false // there is a reply that ends it
	defer func() {
		if (s.closing || last) && stop() { // the client is to get its last reply
			late := time.AfterFunc(goodbyeTime, func() { s.pipe.Close() })
			defer late.Stop()
		}
		cancel()
		followers.Wait()
	}()

	s.send = sender{w: patient{s.pipe}}
	s.in = newMessages(s.pipe)
	s.late = time.AfterFunc(helloTime, func() { s.pipe.Close() })
	defer s.late.Stop()
	if err := s.write(s.srv.hello(s.id)); err != nil {
		return err
	}
	if err := s.greet(); err != nil {
		s.srv.tally(func(c *Counters) { c.BadHello++ })
		return err
	}
	s.late.Stop()
	s.in.began = func() { s.late.Reset(messageTime) }
	for bad := 0; !s.closing; {
		message, err := s.in.next()
		s.late.Stop()
		switch {
		case errors.Is(err, errTooBig):
			s.srv.tally(func(c *Counters) { c.TooBig++ })
			last = s.write(s.reply(opening(message), refusef(tagTooBig, "%v", errTooBig).element())) == nil
			return err
		case errors.Is(err, errFraming):
			s.srv.tally(func(c *Counters) { c.BadFraming++ })
			return err
		case err != nil:
			return err
		}
		rpc, err := decode(message)
		if err != nil || rpc.space != nsBase || rpc.name != "rpc" {
			s.srv.tally(func(c *Counters) { c.Malformed++ })
			s.count(&s.counts.bad)
			if bad++; bad > maxMalformed {
				return fmt.Errorf("%d messages in a row that are none", bad)
			}
			if err == nil {
				err = errors.New("no rpc of " + nsBase)
			}
			if rpc != nil && rpc.name != "rpc" {
				rpc = nil
			}
			e := &rpcError{typ: "rpc", tag: tagMalformed, message: err.Error()}
			if err := s.write(s.reply(rpc, e.element())); err != nil {
				return err
			}
			continue
		}
		bad = 0
		if err := s.answer(ctx, rpc, &followers); err != nil {
			return err
		}
	}
	return nil
}

// greet reads the hello of the client and agrees on a framing (RFC 6241 section 8.1).
func (s *session) greet() error {
	message, err := s.in.next()
	if err != nil {
		return err
	}
	hello, err := decode(message)
	switch {
	case err != nil:
		return fmt.Errorf("hello: %w", err)
	case hello.space != nsBase || hello.name != "hello":
		return fmt.Errorf("the first message is %.40q, no hello of %s", hello.name, nsBase)
	case hello.child(nsBase, "session-id") != nil:
		return errors.New("the hello of a client has a session-id")
	}
	known := false
	if list := hello.child(nsBase, "capabilities"); list != nil {
		for _, c := range list.kids {
			switch c.value() {
			case capBase11:
				s.in.chunked, s.send.chunked, known = true, true, true
			case capBase10:
				known = true
			}
		}
	}
	if !known {
		return errors.New("the client knows neither base:1.0 nor base:1.1")
	}
	return nil
}

// answer does what an rpc asks for. The error ends the session.
func (s *session) answer(ctx context.Context, rpc *element, followers *sync.WaitGroup) error {
	s.srv.tally(func(c *Counters) { c.RPCs++ })
	s.count(&s.counts.rpcs)
	var kids []*element
	var err error
	after := func() {}
	if _, ok := rpc.attr("", "message-id"); !ok {
		err = &rpcError{typ: "rpc", tag: tagMissingAttribute, message: "an rpc has a message-id", info: []*element{leafOf(nsBase, "bad-attribute", "message-id"), leafOf(nsBase, "bad-element", "rpc")}}
	} else {
		kids, after, err = s.do(ctx, rpc, followers)
	}
	if err != nil {
		s.srv.tally(func(c *Counters) { c.Errors++ })
		s.count(&s.counts.errors)
		kids = nil
		for _, e := range describe(err) {
			kids = append(kids, e.element())
		}
	} else if kids == nil {
		kids = []*element{el(nsBase, "ok")}
	}
	if err := s.write(s.reply(rpc, kids...)); err != nil {
		return err
	}
	if after != nil {
		after()
	}
	return nil
}

// reply has the attributes of the rpc (RFC 6241 section 4.1); nil: it is not known.
func (s *session) reply(rpc *element, kids ...*element) *element {
	out := el(nsBase, "rpc-reply", kids...)
	if rpc == nil {
		return out
	}
	prefixes := map[string]string{}
	for _, a := range rpc.attrs {
		if a.Name.Space == "xmlns" {
			prefixes[a.Value] = a.Name.Local
			out.attrs = append(out.attrs, a)
		}
	}
	for _, a := range rpc.attrs {
		switch p, known := prefixes[a.Name.Space]; {
		case a.Name.Space == "xmlns", a.Name.Space == "" && a.Name.Local == "xmlns":
		case a.Name.Space == "":
			out.attrs = append(out.attrs, a)
		case known:
			out.attrs = append(out.attrs, xml.Attr{Name: xml.Name{Space: p, Local: a.Name.Local}, Value: a.Value})
		}
	}
	return out
}

// opening gives the first element of the beginning of a message, for its attributes; nil: it has
// none.
func opening(message []byte) *element {
	e, _ := decode(message[:min(len(message), 4<<10)]) // of its end nothing is left
	if e == nil || e.name != "rpc" {
		return nil
	}
	e.kids = nil
	return e
}

// write sends one message.
func (s *session) write(e *element) error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.send.send(e)
}

// patient ends a pipe whose reader takes nothing for too long.
type patient struct{ p pipe }

func (w patient) Write(b []byte) (int, error) {
	late := time.AfterFunc(stuckTime, func() { w.p.Close() })
	defer late.Stop()
	return w.p.Write(b)
}

// ID is the session-id as text.
func (s *session) idText() string { return strconv.FormatUint(uint64(s.id), 10) }
