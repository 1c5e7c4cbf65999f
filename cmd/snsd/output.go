package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/openinof/inof/snsd"
)

// writer is where lines go.
type writer = io.Writer

// line is one event as it is printed. Time is when the kernel received the frame for
// notices and what follows from them, and the present otherwise.
type line struct {
	Time    time.Time     `json:"time"`
	Event   string        `json:"event"`
	NS      int64         `json:"ns"` // Time in nanoseconds since 1970
	Subject netip.Addr    `json:"subject,omitzero"`
	Host    netip.Addr    `json:"host,omitzero"`
	State   string        `json:"state,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Seq     *uint32       `json:"seq,omitempty"`
	Service *snsd.Service `json:"service,omitempty"`
	// Ignored marks a notice that leads to nothing because its subject is an initiator.
	Ignored   bool         `json:"ignored,omitempty"`
	Acked     *bool        `json:"acked,omitempty"` // of a notice or duplicate: an ack was sent
	Interface string       `json:"interface,omitempty"`
	Link      string       `json:"link,omitempty"` // up, down, gone
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Of a failover: the controllers on the path, how many sockets were destroyed, and how long
	// it took from the moment the notice was read.
	Controllers []string `json:"controllers,omitempty"`
	Sockets     int      `json:"sockets,omitempty"`
	TookNS      int64    `json:"took_ns,omitempty"`
	Error       string   `json:"error,omitempty"`
}

// notice fills in what is told of a notice.
func (l line) notice(n *snsd.Notice) line {
	seq, svc := n.Seq, n.Service
	l.Subject, l.Host, l.State, l.Reason, l.Seq, l.Service = n.Subject, n.Host, n.State.String(), n.Reason.String(), &seq, &svc
	return l
}

// printer writes one line an event, each in one write so that a reader never sees
// half of one.
type printer func(l line) error

func newPrinter(format string, w writer) (printer, error) {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		return func(l line) error {
			l.NS = l.Time.UnixNano()
			return enc.Encode(l)
		}, nil
	case "text":
		return func(l line) error {
			_, err := io.WriteString(w, l.text())
			return err
		}, nil
	}
	return nil, fmt.Errorf("--output %q: want text or json", format)
}

func (l line) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-10s", l.Time.Format("15:04:05.000000000"), l.Event)
	field := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if l.Link != "" {
		field("%s %s", l.Interface, l.Link)
	}
	if len(l.Addresses) > 0 {
		for _, a := range l.Addresses {
			field("%s", a)
		}
	}
	if l.Subject.IsValid() {
		field("%s: %s %s", l.Host, l.Subject, l.State)
		if l.Reason != "" && l.Reason != snsd.ReasonNone.String() {
			field("(%s)", l.Reason)
		}
	}
	if s := l.Service; s != nil {
		field("%s %s", s.Role, s.Protocol)
		if s.Port != 0 {
			field("port %d", s.Port)
		}
		if s.NQN != "" {
			field("%s", s.NQN)
		}
	}
	if l.Seq != nil {
		field("seq %d", *l.Seq)
	}
	if l.Ignored {
		field("ignored")
	}
	if l.Acked != nil && !*l.Acked {
		field("not acked")
	}
	if l.Event == "failover" {
		field("%d socket(s) of %d controller(s) destroyed in %v", l.Sockets, len(l.Controllers), time.Duration(l.TookNS))
	}
	if l.Error != "" {
		field("%s", l.Error)
	}
	b.WriteByte('\n')
	return b.String()
}
