package reflector

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Whatever is cut, delayed, restarted or trimmed in between: in the end each client
// holds what its reflectors agree on, and no record is withdrawn that was not there.
func TestSessionsThatResume(t *testing.T) {
	resumed, trimmed, fulls := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		const devs, hosts = 3, 5
		nRefl := rapid.IntRange(1, 2).Draw(t, "reflectors")
		agree := client.Agreement(rapid.IntRange(0, 1).Draw(t, "agreement"))
		n := newNetwork(t, nRefl, devs, agree, Config{Grace: time.Minute, FeedPosts: rapid.SampledFrom([]int{2, 8, 1000}).Draw(t, "log"), SyncStep: rapid.IntRange(0, 2).Draw(t, "step"), Paced: rapid.Bool().Draw(t, "paced")})
		if rapid.Bool().Draw(t, "small client log") {
			for _, c := range n.clients {
				n.ownLog = 0
				c.RememberGone(0)
			}
		}
		n.decided = true
		epoch := uint64(1_000_000_000)
		dev := rapid.Custom(func(t *rapid.T) netip.Addr { return inoftest.DevID(rapid.IntRange(0, devs-1).Draw(t, "device")) })
		refl := rapid.Custom(func(t *rapid.T) netip.Addr { return n.ids[rapid.IntRange(0, nRefl-1).Draw(t, "reflector")] })
		port := rapid.SampledFrom([]string{"p0", "p1"})
		since := 0
		flush := func(d netip.Addr) { n.fromClient(d, n.clients[d].Flush(n.now)) }
		key := func(t *rapid.T) zone.HostKey {
			return zone.HostKey{Addr: inoftest.HostIP(rapid.IntRange(0, hosts-1).Draw(t, "host")), Device: dev.Draw(t, "at"), Port: port.Draw(t, "port")}
		}
		put := func(t *rapid.T) {
			k := key(t)
			h := inoftest.HostAt(k.Addr, k.Device, k.Port)
			if old, ok := n.clients[k.Device].Hosts()[k]; ok {
				h.Since = old.Since
				h.Service.Port = uint16(rapid.IntRange(0, 1).Draw(t, "service"))
			} else { // heard anew is known since another time
				since++
				h.Since = inoftest.T0.Add(time.Duration(since) * time.Second)
			}
			n.clients[k.Device].PutHost(h)
			flush(k.Device)
		}
		setZones := func(t *rapid.T) {
			s := zone.Set{AutoJoin: rapid.Bool().Draw(t, "auto-join")}
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, "zone "+name) {
					z := zone.Zone{Name: name}
					for range rapid.IntRange(0, 3).Draw(t, "members") {
						z.Members = append(z.Members, drawMember(t, devs, hosts))
					}
					s.Zones = append(s.Zones, z)
				}
			}
			to := n.ids
			if rapid.Bool().Draw(t, "at one only") {
				to = []netip.Addr{refl.Draw(t, "at")}
			}
			for _, r := range to {
				out, err := n.refls[r].SetZones(s, n.now)
				if err != nil {
					t.Fatal(err)
				}
				n.fromRefl(r, out)
			}
		}
		some := func(t *rapid.T) {
			d, r := dev.Draw(t, "device"), refl.Draw(t, "reflector")
			for range rapid.IntRange(1, 4).Draw(t, "messages") {
				n.deliverToRefl(d, r)
				n.deliverToClient(d, r)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":   put,
			"put2":  put,
			"some":  some,
			"some2": some,
			"all":   func(*rapid.T) { n.deliverAll() },
			"withdraw": func(t *rapid.T) {
				k := key(t)
				n.clients[k.Device].WithdrawHost(k, snsd.ReasonAgedOut)
				flush(k.Device)
			},
			"fault": func(t *rapid.T) {
				k := key(t)
				since++
				setDown(n.clients[k.Device], k.Port, zone.Down{Why: snsd.ReasonLinkDown, Since: inoftest.T0.Add(time.Duration(since) * time.Second)}, k.Addr)
				flush(k.Device)
			},
			"clear": func(t *rapid.T) {
				d := dev.Draw(t, "at")
				setDown(n.clients[d], port.Draw(t, "port"), zone.Down{})
				flush(d)
			},
			"fence": func(t *rapid.T) {
				k := key(t)
				if _, known := n.clients[k.Device].Hosts()[k]; known {
					peers := make([]wire.FencePeer, rapid.IntRange(0, 2).Draw(t, "fenced"))
					for i := range peers {
						peers[i] = wire.FencePeer{Host: inoftest.HostIP(10 + i), Level: snsd.FenceNetwork, Hold: 20 * time.Second}
					}
					n.clients[k.Device].SetFence(k.Port, k.Addr, peers)
					flush(k.Device)
				}
			},
			"zones": setZones,
			"join":  func(t *rapid.T) { n.join(dev.Draw(t, "device"), refl.Draw(t, "reflector")) },
			"cut":   func(t *rapid.T) { n.cut(dev.Draw(t, "device"), refl.Draw(t, "reflector")) },
			"coalesce": func(t *rapid.T) {
				l := n.link(dev.Draw(t, "device"), refl.Draw(t, "reflector"))
				l.toClient, l.toRefl = coalesced(t, l.toClient), coalesced(t, l.toRefl)
			},
			"restart client": func(t *rapid.T) {
				epoch += 1000 // starts are never so close to each other that a raised epoch is that of another one
				n.restartClient(dev.Draw(t, "device"), epoch, agree)
			},
			"restart client with its clock set back": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				epoch += 1000
				back := uint64(rapid.IntRange(1, 3).Draw(t, "back")) * 1_000_000
				for _, r := range n.ids {
					if p := n.refls[r].ResumePoint(d); p == nil || p.Epoch < n.clients[d].Epoch() || p.Epoch <= epoch/2 {
						continue
					}
					// Who knows the later start tells it so. When nobody does any more, other
					// devices that hold its later words may take the new ones for old.
					n.restartClient(d, n.clients[d].Epoch()/1_000_000*1_000_000-back+epoch%1_000_000, agree)
					n.join(d, refl.Draw(t, "first session"))
					n.join(d, r)
					return
				}
			},
			"restart reflector": func(t *rapid.T) {
				r := refl.Draw(t, "reflector")
				for _, d := range n.devices() {
					n.cut(d, r)
				}
				old := n.refls[r]
				epoch += 1000
				x, err := New(r, epoch, old.Zones(), Config{Grace: time.Minute, Known: old.KnownDevices(), FeedPosts: old.feed.most, SyncStep: old.cfg.SyncStep, Paced: old.cfg.Paced}, n.now)
				if err != nil {
					t.Fatal(err)
				}
				n.refls[r] = x
			},
			"time": func(t *rapid.T) {
				n.now = n.now.Add(time.Duration(rapid.IntRange(1, 70).Draw(t, "seconds")) * time.Second)
				for _, r := range n.ids {
					n.fromRefl(r, n.refls[r].Tick(n.now))
				}
				for _, d := range n.devices() {
					n.apply(d, n.clients[d].Tick(n.now))
				}
			},
			"step": func(t *rapid.T) {
				r := refl.Draw(t, "reflector")
				slow := rapid.SliceOfN(rapid.Bool(), devs, devs).Draw(t, "slow")
				n.refls[r].Drained()
				n.pull(r, func(dev netip.Addr) bool { return !slow[dev.As4()[3]-1] })
			},
			"settle": func(*rapid.T) { n.settle() },
		})
		n.settle()
		resumed, trimmed, fulls = resumed+n.resumed, trimmed+n.trimmed, fulls+n.full
	})
	t.Logf("%d sessions resumed, %d began with everything, %d more because the client's log was trimmed", resumed, fulls, trimmed)
}
