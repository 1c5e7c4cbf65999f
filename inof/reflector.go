package inof

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// ReflectorConfig bounds and tunes a Reflector; zero values mean the defaults.
type ReflectorConfig struct {
	MaxClients     int
	MaxZones       int
	MaxHosts       int
	MaxMemberships int
	Grace          time.Duration // for devices that left, and after the own start for known ones
	BFD            BFDSettings   // handed to every client
	// Known are the devices that had records here before the last stop
	// (KnownDevices, kept by the daemon): no End-of-Sync before they are back.
	Known []netip.Addr
}

// ReflectorCounters count what a Reflector did.
type ReflectorCounters struct {
	UpdatesIn       uint64 `json:"updates_in"`
	RecordsIn       uint64 `json:"records_in"`
	UpdatesOut      uint64 `json:"updates_out"`    // messages made, each for one or more clients
	DeliveriesOut   uint64 `json:"deliveries_out"` // messages times receivers
	NotOwned        uint64 `json:"records_not_owned"`
	OverLimit       uint64 `json:"records_over_limit"`
	BadRecords      uint64 `json:"bad_records"`
	UnknownPeer     uint64 `json:"unknown_device"`
	UnexpectedTypes uint64 `json:"unexpected_types"`
	Syncs           uint64 `json:"syncs"`
	Swept           uint64 `json:"records_swept"`    // a returning device did not repeat them
	AgedOut         uint64 `json:"records_aged_out"` // the grace time of their device passed
	ClientsRefused  uint64 `json:"clients_refused"`
	TooLarge        uint64 `json:"records_too_large"`
}

// DeviceStatus is one device as the reflector sees it.
type DeviceStatus struct {
	Device  netip.Addr `json:"device"`
	Up      bool       `json:"up"`      // it has a session
	Synced  bool       `json:"synced"`  // it has completed its full sync in this session
	Told    bool       `json:"told"`    // it has got our End-of-Sync in this session
	Stale   bool       `json:"stale"`   // it left; its records are kept until Expires
	Expires time.Time  `json:"expires"` // end of the grace time of a stale device
	Hosts   int        `json:"hosts"`
	Faults  int        `json:"faults"`
	Zones   int        `json:"zones"` // zones it is concerned with
}

// Reflector is the reflector side of a device: it holds the records of all
// devices and passes each client what concerns it.
type Reflector struct{ counters ReflectorCounters }

// NewReflector gives a reflector with a zone configuration. Now starts the time
// for which End-of-Sync is held back for cfg.Known.
func NewReflector(self netip.Addr, epoch uint64, set zone.Set, cfg ReflectorConfig, now time.Time) (*Reflector, error) {
	return &Reflector{}, nil
}

// Join says that the session of a device is established.
func (r *Reflector) Join(dev netip.Addr, now time.Time) []Delivery { return nil }

// Leave says that the session of a device ended: its records become stale.
func (r *Reflector) Leave(dev netip.Addr, now time.Time) []Delivery { return nil }

// Receive takes a message of an established session. Deliveries are valid also
// when the error is a *RefusedError.
func (r *Reflector) Receive(dev netip.Addr, m Message, now time.Time) ([]Delivery, error) {
	return nil, nil
}

// SetZones replaces the zone configuration. On an error nothing is changed.
func (r *Reflector) SetZones(set zone.Set, now time.Time) ([]Delivery, error) { return nil, nil }

// PutZone adds or replaces one zone.
func (r *Reflector) PutZone(z zone.Zone, now time.Time) ([]Delivery, error) { return nil, nil }

// DeleteZone removes one zone; one that is not there is no error.
func (r *Reflector) DeleteZone(name string, now time.Time) []Delivery { return nil }

// SetBFD changes the BFD settings of every client.
func (r *Reflector) SetBFD(b BFDSettings, now time.Time) []Delivery { return nil }

// Tick does what is due: grace times that passed.
func (r *Reflector) Tick(now time.Time) []Delivery { return nil }

// Next is when Tick has something to do; zero: nothing.
func (r *Reflector) Next() time.Time { return time.Time{} }

// KnownDevices are the devices with a session or with records, sorted; to be kept
// by the daemon over a restart.
func (r *Reflector) KnownDevices() []netip.Addr { return nil }

// Devices is the status of every device, sorted by device id.
func (r *Reflector) Devices() []DeviceStatus { return nil }

// Zones is the present zone configuration, sorted by name.
func (r *Reflector) Zones() zone.Set { return zone.Set{} }

// Directory is the reflector's table of all hosts; to be read only.
func (r *Reflector) Directory() *zone.Directory { return nil }

// Counters returns a copy.
func (r *Reflector) Counters() ReflectorCounters { return r.counters }

var _ snsd.Reason
