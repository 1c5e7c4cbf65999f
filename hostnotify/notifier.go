package hostnotify

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Notifier tells the local subscribers of one device what they should know.
type Notifier struct{}

// Snapshot is what was told, to be kept over a restart (JSON).
type Snapshot struct{}

// Latencies of this Notifier.
type Latencies struct{}

func New(cfg Config, dir Directory) *Notifier                                             { return &Notifier{} }
func (n *Notifier) Subscribe(host netip.Addr, port string, mac fabric.MAC, now time.Time) {}
func (n *Notifier) Unsubscribe(host netip.Addr, port string, now time.Time)               {}
func (n *Notifier) PortUp(port string, mac fabric.MAC, now time.Time)                     {}
func (n *Notifier) PortDown(port string, now time.Time)                                   {}
func (n *Notifier) Changed(c zone.Changes, faultAt, now time.Time)                        {}
func (n *Notifier) Query(host netip.Addr, port string, now time.Time)                     {}
func (n *Notifier) Ack(port string, a snsd.Ack, now time.Time)                            {}
func (n *Notifier) SetSynced(on bool, now time.Time)                                      {}
func (n *Notifier) Poll(now time.Time) []Out                                              { return nil }
func (n *Notifier) Next() time.Time                                                       { return time.Time{} }
func (n *Notifier) Snapshot() Snapshot                                                    { return Snapshot{} }
func (n *Notifier) Restore(s Snapshot, now time.Time) error                               { return nil }
func (n *Notifier) Notices() []Notice                                                     { return nil }
func (n *Notifier) Latencies() Latencies                                                  { return Latencies{} }
func (n *Notifier) Counters() Counters                                                    { return Counters{} }
