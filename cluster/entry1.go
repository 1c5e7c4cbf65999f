package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// Limits of entries of version 1.
const (
	maxMember = 400     // bytes of one zone member as text
	maxCount  = 4 << 20 // more than rules ever allow
)

// decodeEntry1 reads an entry of version 1: fields one after the other, as earlier versions of
// inofd wrote them. Logs on disk have them until a snapshot takes their place.
func decodeEntry1(b []byte) (*Entry, error) {
	r := &reader{b: b, where: "entry"}
	version := r.u8("version")
	e := &Entry{Kind: Kind(r.u8("kind"))}
	if r.err == nil && (e.Kind < KindGenesis || e.Kind > KindSettle) {
		return nil, &UnknownEntryError{version, e.Kind}
	}
	e.ID = RequestID{r.u64("origin"), r.u64("number")}
	e.Since = r.u64("since")
	e.Meta = r.meta()
	switch e.Kind {
	case KindGenesis:
		e.Cluster = r.u64("cluster")
		e.Set.AutoJoin, e.Set.Hard = r.flag("auto-join"), r.flag("hard")
		e.Rules = r.rules()
		e.Zones = r.zones()
	case KindAddZone, KindAddMembers, KindRemoveMembers:
		z := r.zone()
		e.Name, e.Members = z.Name, z.Members
	case KindRemoveZone:
		e.Name = r.text("name", zone.MaxName)
	case KindReplace:
		e.Zones = r.zones()
	case KindSetting:
		e.Name, e.Value = r.text("setting", maxKey), r.text("value", maxValue)
	case KindCommit:
		e.Base, e.Deadline = r.text("base", maxBase), r.time("deadline")
		if text := r.bytes("difference", MaxEntry); r.err == nil {
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&e.Delta); err != nil {
				r.fail("difference: %v", err)
			} else if _, err := dec.Token(); err != io.EOF {
				r.fail("difference: something follows it")
			}
		}
		if len(r.b) > 0 {
			if e.Number = r.u64("extends"); e.Number == 0 {
				r.fail("extends: 0, which is not written")
			}
		}
	case KindSettle:
		e.Number, e.Stay = r.u64("number"), r.flag("stay")
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return e, nil
}

func (r *reader) time(what string) time.Time {
	if n := r.u64(what); n != 0 {
		return time.Unix(0, int64(n)).UTC()
	}
	return time.Time{}
}

func (r *reader) meta() change.Meta {
	return change.Meta{Time: r.time("time"), By: r.text("by", maxWho), From: r.text("from", maxWho), Comment: r.text("comment", MaxComment)}
}

func (r *reader) rules() zone.Rules {
	return zone.Rules{AllowLoopback: r.flag("allow-loopback"), MaxZones: int(r.u32("max zones")), MaxMembers: int(r.u32("max members"))}
}

func (r *reader) zone() zone.Zone {
	z := zone.Zone{Name: r.text("zone name", zone.MaxName)}
	n := r.count("members", maxCount, 2)
	if n == 0 {
		return z
	}
	z.Members = make([]zone.Member, 0, min(n, 4096))
	for range n {
		text := r.text("member", maxMember)
		if r.err != nil {
			return z
		}
		m, err := zone.ParseMember(text)
		if err != nil {
			r.fail("%v", err)
			return z
		}
		z.Members = append(z.Members, m)
	}
	return z
}

func (r *reader) zones() []zone.Zone {
	n := r.count("zones", maxCount, 6)
	if n == 0 {
		return nil
	}
	out := make([]zone.Zone, 0, min(n, 4096))
	for range n {
		out = append(out, r.zone())
		if r.err != nil {
			return nil
		}
	}
	return out
}
