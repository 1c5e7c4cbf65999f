package reflector

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// told is what each device is told, in order.
func told(t inoftest.Failer, ds []wire.Delivery) map[netip.Addr][][]byte {
	out := map[netip.Addr][][]byte{}
	for _, d := range ds {
		e, err := wire.Encode(d.Msg)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if !slices.IsSortedFunc(d.To, netip.Addr.Compare) || len(slices.Compact(slices.Clone(d.To))) != len(d.To) {
			t.Fatalf("receivers %v are not sorted, or one is there twice", d.To)
		}
		for _, to := range d.To {
			out[to] = append(out[to], e.Body())
		}
	}
	return out
}

// A reflector that lets one device of a class act for all tells every device the same,
// byte for byte, as one that looks at each of them.
func TestOneOfAClassActsForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const devs, addrs, ports = 9, 8, 3
		dev := rapid.Map(rapid.IntRange(0, devs-1), inoftest.DevID)
		host := rapid.Map(rapid.IntRange(0, addrs-1), inoftest.HostIP)
		port := rapid.Map(rapid.IntRange(0, ports-1), func(i int) string { return fmt.Sprint("Ethernet", i) })
		member := rapid.Custom(func(t *rapid.T) zone.Member {
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				return zone.Member{Kind: zone.MemberPort, Device: dev.Draw(t, "device"), Port: port.Draw(t, "port")}
			}
			return inoftest.AddrMember(host.Draw(t, "member"))
		})
		members := rapid.SliceOfN(member, 0, 6)
		zoned := func(i int) zone.Zone {
			return zone.Zone{Name: fmt.Sprint("z", i), Members: members.Draw(t, "members")}.Canonical()
		}
		set := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join"), Zones: []zone.Zone{zoned(0), zoned(1), zoned(2)}}
		cfg := Config{Grace: time.Minute, FeedPosts: 20}
		now := inoftest.T0
		var pair [2]*Reflector
		for i := range pair {
			r, err := New(inoftest.ReflID, 1, set, cfg, now)
			if err != nil {
				t.Fatal(err)
			}
			r.each = i == 1
			pair[i] = r
		}
		var what string
		do := func(f func(r *Reflector) []wire.Delivery) {
			one, each := told(t, f(pair[0])), told(t, f(pair[1]))
			for i := range devs {
				if a, b := one[inoftest.DevID(i)], each[inoftest.DevID(i)]; !slices.EqualFunc(a, b, bytes.Equal) {
					t.Fatalf("%s: device %v is told\n%x\nwant\n%x", what, inoftest.DevID(i), a, b)
				}
			}
		}
		seq := uint64(0)
		receive := func(d netip.Addr, m wire.Message) {
			do(func(r *Reflector) []wire.Delivery {
				ds, _ := r.Receive(d, m, now)
				return ds
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"records": func(t *rapid.T) {
				what = "records"
				d := dev.Draw(t, "sender")
				seq++
				u := &wire.Update{Origin: d, Epoch: 5, Seq: seq, Partial: rapid.IntRange(0, 4).Draw(t, "partial") == 0}
				for range rapid.IntRange(0, 2).Draw(t, "hosts") {
					h := wire.HostRecord{Op: wire.Put, Host: inoftest.HostAt(host.Draw(t, "host"), d, port.Draw(t, "port"))}
					if rapid.IntRange(0, 2).Draw(t, "op") == 0 {
						h = wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: h.Host.HostKey}, Why: snsd.ReasonAgedOut}
					}
					u.Hosts = append(u.Hosts, h)
				}
				for range rapid.IntRange(0, 2).Draw(t, "faults") {
					f := wire.DownRecord{Device: d, Port: port.Draw(t, "port"), Addrs: rapid.SliceOfN(host, 0, 4).Draw(t, "addresses")}
					if rapid.IntRange(0, 2).Draw(t, "op") > 0 {
						f.Down = zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0}
					}
					u.Downs = append(u.Downs, f)
				}
				receive(d, u)
			},
			"session": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				if x := pair[0].devices[d]; x != nil && x.up {
					what = "leave"
					do(func(r *Reflector) []wire.Delivery { return r.Leave(d, now) })
					return
				}
				what = "join"
				all := rapid.IntRange(0, 5).Draw(t, "all") == 0
				var seen *wire.Resume
				if rapid.Bool().Draw(t, "resumes") {
					seen = &wire.Resume{Epoch: 1, Seq: uint64(rapid.IntRange(0, int(pair[0].feed.seq)).Draw(t, "seen"))}
					if rapid.Bool().Draw(t, "has the zones") {
						seen.Zones = pair[0].interest.digest
					}
				}
				do(func(r *Reflector) []wire.Delivery { r.SetInterest(d, all); return r.Resume(d, seen, nil, now) })
			},
			"sync": func(t *rapid.T) {
				what = "end of sync"
				receive(dev.Draw(t, "device"), &wire.EndOfSync{Epoch: 5, Seq: seq, Resumed: rapid.Bool().Draw(t, "resumed")})
			},
			"zones": func(t *rapid.T) {
				what = "zones"
				z := zoned(rapid.IntRange(0, 3).Draw(t, "zone"))
				switch rapid.IntRange(0, 3).Draw(t, "how") {
				case 0:
					do(func(r *Reflector) []wire.Delivery { return r.DeleteZone(z.Name, now) })
				case 1:
					set := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join"), Zones: []zone.Zone{z}}
					do(func(r *Reflector) []wire.Delivery {
						ds, err := r.SetZones(set, now)
						if err != nil {
							t.Fatal(err)
						}
						return ds
					})
				default:
					do(func(r *Reflector) []wire.Delivery {
						ds, err := r.PutZone(z, now)
						if err != nil {
							t.Fatal(err)
						}
						return ds
					})
				}
			},
			"time": func(t *rapid.T) {
				what = "time"
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
				do(func(r *Reflector) []wire.Delivery { return r.Tick(now) })
			},
			"": func(t *rapid.T) {
				for name, a := range pair[0].interest.areas {
					if len(a.list) != len(a.devs) {
						t.Fatalf("zone %s: %d devices are listed, %d are in it", name, len(a.list), len(a.devs))
					}
					for _, d := range a.list {
						if pair[0].devices[d.id] != d || a.devs[d.id] == 0 {
							t.Fatalf("zone %s: %v is listed and is not in it, or is forgotten", name, d.id)
						}
					}
				}
			},
		})
	})
}
