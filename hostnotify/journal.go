package hostnotify

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// Entry is one notice that was put in a frame, for a journal: a Snapshot and the
// entries since it together are a newer Snapshot.
type Entry struct {
	Host    netip.Addr   `json:"host"`
	MAC     fabric.MAC   `json:"mac"` // of the machine that was told
	Told    ToldSnapshot `json:"told"`
	Service snsd.Service `json:"service"` // of the subject
	// Paid is set instead of Told when the host was told everything its port was down for.
	Paid bool `json:"paid,omitempty"`
}

// maxJournal bounds the entries that wait for Journal: what a host can be told within
// seconds by far.
const maxJournal = 1 << 16

// journal notes a notice that was just put in a frame.
func (n *Notifier) journal(p *pair) {
	n.keep(Entry{Host: p.sub.addr, MAC: p.sub.mac, Service: *p.subj.service, Told: p.snapshot()})
}

func (n *Notifier) keep(e Entry) {
	if len(n.entries) == maxJournal {
		n.entries = n.entries[:0] // nobody takes them
	}
	n.entries = append(n.entries, e)
}

// Journal returns what was put in frames since it was last called. The slice is valid
// until the next call of the Notifier.
func (n *Notifier) Journal() []Entry {
	list := n.entries
	n.entries = n.entries[:0]
	return list
}

// Replay adds journal entries, in their order, to a Snapshot that is older than they are.
func (s *Snapshot) Replay(entries []Entry) {
	hosts := make(map[netip.Addr]int, len(s.Hosts))
	for i := range s.Hosts {
		hosts[s.Hosts[i].Addr] = i
	}
	services := make(map[netip.Addr]int, len(s.Subjects))
	for i := range s.Subjects {
		services[s.Subjects[i].Addr] = i
	}
	type key struct{ host, subject netip.Addr }
	told := make(map[key]int)
	for i := range s.Hosts {
		for j := range s.Hosts[i].Told {
			told[key{s.Hosts[i].Addr, s.Hosts[i].Told[j].Subject}] = j
		}
	}
	for _, e := range entries {
		i, ok := hosts[e.Host]
		if !ok {
			i = len(s.Hosts)
			hosts[e.Host] = i
			s.Hosts = append(s.Hosts, HostSnapshot{Addr: e.Host})
		}
		h := &s.Hosts[i]
		if h.MAC != e.MAC { // another machine has the address now: it was told nothing before
			for _, t := range h.Told {
				delete(told, key{e.Host, t.Subject})
			}
			*h = HostSnapshot{Addr: e.Host, MAC: e.MAC}
		}
		if e.Paid {
			h.Owed = false
			continue
		}
		if j, ok := services[e.Told.Subject]; ok && s.Subjects[j].Service != e.Service {
			old := s.Subjects[j].Service
			for k, j := range told { // what the others were told does not change with it
				if t := &s.Hosts[hosts[k.host]].Told[j]; k.subject == e.Told.Subject && t.Service == nil {
					t.Service = &old
				}
			}
		}
		if j, ok := told[key{e.Host, e.Told.Subject}]; ok {
			h.Told[j] = e.Told
		} else {
			told[key{e.Host, e.Told.Subject}] = len(h.Told)
			h.Told = append(h.Told, e.Told)
		}
		if j, ok := services[e.Told.Subject]; ok {
			s.Subjects[j].Service = e.Service
		} else {
			services[e.Told.Subject] = len(s.Subjects)
			s.Subjects = append(s.Subjects, SubjectSnapshot{e.Told.Subject, e.Service})
		}
		if d := int32(e.Told.Seq - s.Seq); d >= 0 { // serial number arithmetic, it may wrap
			s.Seq = e.Told.Seq + 1
		}
	}
	s.sort()
}

func (s *Snapshot) sort() {
	slices.SortFunc(s.Subjects, func(a, b SubjectSnapshot) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(s.Hosts, func(a, b HostSnapshot) int { return a.Addr.Compare(b.Addr) })
	for i := range s.Hosts {
		slices.SortFunc(s.Hosts[i].Told, func(a, b ToldSnapshot) int {
			return a.Subject.Compare(b.Subject)
		})
	}
}
