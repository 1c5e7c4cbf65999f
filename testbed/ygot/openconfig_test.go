package ygot

import (
	"context"
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	oc "github.com/openconfig/ygot/exampleoc/opstateoc"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/gnmi"
	"github.com/openinof/inof/internal/telemetry"
)

// source has something of everything that OpenConfig has a path for.
type source struct{ gnmi.Source }

func (source) Events(uint64) api.EventBatch { return api.EventBatch{} }

func (source) Subscribe(context.Context, uint64) (api.EventBatch, error) {
	return api.EventBatch{}, nil
}

func (source) Snapshot(context.Context, telemetry.Need, time.Time) (*telemetry.Snapshot, error) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	a := netip.MustParseAddr
	h := telemetry.Health{Port: "Ethernet2"}
	h.At, h.Valid = now, fabric.AllFields
	return &telemetry.Snapshot{
		At: now, CountersAt: now, Inconsistent: -1,
		Status: api.Status{Device: a("192.0.2.11"), Name: "tor-1", Version: "v1", Started: now, Warnings: api.Warnings{{Rule: "x", Text: "a text"}}},
		Ports: []api.Port{{Name: "Ethernet2", Index: 2, MTU: 9000, AdminUp: true, LastFlap: &now, Counters: &fabric.Counters{}},
			{Name: "Ethernet10", Carrier: true}},
		Health:     []telemetry.Health{h},
		Neighbours: telemetry.Part[api.Neighbour]{At: now, Rows: []api.Neighbour{{Port: "Ethernet2", ChassisID: "02:00:00:00:00:01", PortID: "SNSD", SysName: "host", TTL: 120, Age: api.Duration(time.Second)}}},
		Paths:      api.BFD{Sessions: []api.BFDSession{{Device: a("192.0.2.12"), Local: a("192.0.2.11"), State: "AdminDown", RemoteState: "Init", LocalDiscr: 7, RemoteDiscr: 9, LastDown: &now, Flaps: 3}}},
		Counters: []api.Counter{{Room: "lldp", Name: "frames_in", Value: 1}, {Room: "lldp", Name: "frames_discarded", Value: 1}, {Room: "lldp", Name: "frames_in_errors"},
			{Room: "lldp", Name: "tlvs_discarded"}, {Room: "lldp", Name: "tlvs_unrecognized"}, {Room: "lldp", Name: "ageouts"}},
		Latest:  &api.Event{ID: 1, Time: now, Kind: "port", Text: "a text"},
		Machine: telemetry.Machine{At: now, Memory: 1 << 30, Boot: now},
	}, nil
}

// OpenConfig's models take what the device says: path, type and enumeration of each leaf. They are
// older than those of docs/telemetry.md: without qos and link-transitions.
func TestOpenConfigTakesWhatTheDeviceSays(t *testing.T) {
	s := gnmi.New(source{}, nil, time.Now)
	all := map[string]any{}
	for _, top := range []string{"interfaces", "lldp", "bfd", "system"} {
		r, err := s.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{{Elem: []*pb.PathElem{{Name: top}}}}, Encoding: pb.Encoding_JSON_IETF})
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(r.Notification[0].Update[0].Val.GetJsonIetfVal(), &v); err != nil {
			t.Fatal(err)
		}
		all["openconfig-"+top+":"+top] = without(v, "link-transitions")
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var d oc.Device
	if err := oc.Unmarshal(text, &d); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := d.Validate(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	i := d.GetInterface("Ethernet2")
	if i.GetOperStatus() != oc.Interface_OperStatus_DOWN || i.GetCounters() == nil || i.GetMtu() != 9000 || d.GetSystem().GetHostname() != "tor-1" {
		t.Errorf("%+v", i)
	}
}

// without removes a member wherever it is.
func without(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, name)
		for k := range v {
			v[k] = without(v[k], name)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i], name)
		}
	}
	return v
}
