package inof

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// This file is the reflector's side of standings: a client that hears of a host from
// another reflector alone asks whether a zone here names that host, and is told
// again whenever that changes. What is asked is kept like a device's hosts.

// question is one about a host.
type question struct {
	nqn   string
	gen   uint32 // the session that asked it last
	zoned bool   // as it was answered
}

// asker is who asks about a host.
type asker struct {
	dev netip.Addr
	key zone.HostKey
}

func compareAskers(a, b asker) int {
	return cmp.Or(compareKeys(a.key, b.key), a.dev.Compare(b.dev))
}

// takeQuestion takes a question of a device, or its end.
func (r *Reflector) takeQuestion(t *change, d *device, s *StandingRecord) (*uint64, error) {
	a := asker{d.id, s.Host}
	q := d.asked[s.Host]
	switch {
	case s.Op == Withdraw:
		if q != nil {
			r.dropQuestion(d, s.Host)
		}
		return nil, nil
	case s.State != StandingAsked:
		return &r.counters.NotOwned, &OwnerError{Record: "standing of host " + s.Host.Addr.String(), Owner: "reflectors", Sender: d.id.String()}
	case q == nil && len(d.asked) >= r.cfg.MaxHosts: // each host is asked about once
		return &r.counters.OverLimit, &LimitError{What: "questions of one device", Key: "host " + s.Host.Addr.String(), Limit: r.cfg.MaxHosts}
	case q == nil && r.asked >= r.mostAsked:
		return &r.counters.OverLimit, &LimitError{What: "questions", Key: "host " + s.Host.Addr.String(), Limit: r.mostAsked}
	case (zone.Rules{AllowLoopback: true}).CheckAddr(s.Host.Addr) != nil:
		return &r.counters.BadRecords, malformed("standing", "%v is no address of a host", s.Host.Addr)
	}
	r.counters.Questions++
	if q == nil {
		q = &question{}
		if d.asked == nil {
			d.asked = map[zone.HostKey]*question{}
		}
		if r.asking[s.Host.Addr] == nil {
			r.asking[s.Host.Addr] = map[asker]*question{}
		}
		d.asked[s.Host], r.asking[s.Host.Addr][a] = q, q
		r.asked++
	}
	q.nqn, q.gen = s.NQN, d.gen
	t.asked = append(t.asked, a)
	return nil, nil
}

func (r *Reflector) dropQuestion(d *device, k zone.HostKey) {
	delete(d.asked, k)
	r.asked--
	of := r.asking[k.Addr]
	delete(of, asker{d.id, k})
	if len(of) == 0 {
		delete(r.asking, k.Addr)
	}
}

// unask forgets the questions of a device whose session number is chosen.
func (r *Reflector) unask(d *device, chosen func(gen uint32) bool) {
	for k, q := range d.asked {
		if chosen(q.gen) {
			r.dropQuestion(d, k)
		}
	}
}

func (q *question) state() Standing {
	if q.zoned {
		return StandingZoned
	}
	return StandingFree
}

// review works out which answers a change brings: to questions that came with it, and
// where the answer is another one now. It follows the Directory, which is up to date.
func (r *Reflector) review(t *change) {
	if len(r.asking) == 0 {
		return
	}
	type ident struct {
		key zone.HostKey
		nqn string
	}
	seen := map[ident]bool{}
	zoned := func(k zone.HostKey, nqn string) bool {
		id := ident{k, nqn}
		is, known := seen[id]
		if !known {
			h := zone.Host{HostKey: k}
			h.NQN = nqn
			is = r.dir.Names(h)
			seen[id] = is
		}
		return is
	}
	look := func(of map[asker]*question) {
		for a, q := range of {
			if is := zoned(a.key, q.nqn); is != q.zoned {
				q.zoned = is
				t.answers = append(t.answers, a)
			}
		}
	}
	if len(t.zones) > 0 {
		for _, of := range r.asking {
			look(of)
		}
	} else {
		for addr := range t.addrs {
			look(r.asking[addr])
		}
	}
	for _, a := range t.asked {
		if q := r.asking[a.key.Addr][a]; q != nil {
			q.zoned = zoned(a.key, q.nqn)
			t.answers = append(t.answers, a)
		}
	}
	slices.SortFunc(t.answers, compareAskers)
	t.answers = slices.Compact(t.answers)
}

// planAnswers tells those who asked.
func (r *Reflector) planAnswers(t *change) {
	var last zone.HostKey
	var nums [2]uint32 // of those who are told: free, zoned
	for _, a := range t.answers {
		if a.key != last {
			last, nums = a.key, [2]uint32{}
		}
		r.counters.Answers++
		state := r.asking[a.key.Addr][a].state()
		r.plan(t, a.dev, t.number(&nums[state-StandingFree], news{feedKey: feedKey{keyStanding, a.key}}))
	}
}
