package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
)

// Cluster is the cluster of a reflector as one of its members sees it.
type Cluster struct {
	ID        string     `json:"id"` // 16 hexadecimal digits; empty: it has no zones yet
	Self      netip.Addr `json:"self"`
	Leader    netip.Addr `json:"leader"` // invalid: none is known
	Term      uint64     `json:"term"`
	Last      uint64     `json:"last_index"`      // entry of this member's log
	Committed uint64     `json:"committed_index"` // as far as this member knows
	Applied   uint64     `json:"applied_index"`   // last entry with a change of zones that was applied
	InForce   uint64     `json:"in_force_index"`  // the same, at the reflector
	// Accepts reports whether a zone change is accepted here; Trouble says why not.
	Accepts  bool              `json:"accepts_changes"`
	Trouble  string            `json:"trouble,omitempty"`
	Settings map[string]string `json:"settings"`
	Members  []ClusterMember   `json:"members"`
}

// ClusterMember is one member, as it says itself when it is asked.
type ClusterMember struct {
	Device      netip.Addr `json:"device"`
	Address     string     `json:"address"`
	Incarnation string     `json:"incarnation"` // of its state on disk
	Voter       bool       `json:"voter"`       // false: it has joined and catches up
	Self        bool       `json:"self,omitempty"`
	State       string     `json:"state"` // leader, follower, candidate, starting or unreachable
	Term        uint64     `json:"term"`
	Last        uint64     `json:"last_index"`
	Committed   uint64     `json:"committed_index"`
	Applied     uint64     `json:"applied_index"`
	// LastContact is since it heard of the leader; nil: never, or not known.
	LastContact *Duration `json:"last_contact_s,omitempty"`
	Error       string    `json:"error,omitempty"` // why it is unreachable
}

// ClusterChange is a change of the members of a cluster.
type ClusterChange struct {
	Device  netip.Addr     `json:"device"`
	Address netip.AddrPort `json:"address"` // not for a removal
}

// ClusterSetting is one setting of a cluster.
type ClusterSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ClusterSource is the part of a Source about a cluster of reflectors. On a device
// that is in none all methods fail with ErrRefused.
type ClusterSource interface {
	// AddMember makes the device that listens at an address a member, RemoveMember
	// ends a membership, and ReplaceMember puts a device with an empty disk, or at
	// another address, in the place of what it was.
	AddMember(ctx context.Context, c ClusterChange) error
	RemoveMember(ctx context.Context, device netip.Addr) error
	ReplaceMember(ctx context.Context, c ClusterChange) error
	// SetClusterSetting changes what is a setting of the configuration elsewhere.
	SetClusterSetting(ctx context.Context, s ClusterSetting) error
}

// Actions on a cluster.
var (
	// AddMember makes a device a member.
	AddMember = Action[ClusterChange, Nothing]{path: "/v1/cluster/members", role: Admin, check: (*ClusterChange).wrong, do: done(Source.AddMember)}
	// ReplaceMember puts a device in the place of what it was.
	ReplaceMember = Action[ClusterChange, Nothing]{path: "/v1/cluster/members/replace", role: Admin, check: (*ClusterChange).wrong, do: done(Source.ReplaceMember)}
	// SetClusterSetting changes a setting.
	SetClusterSetting = Action[ClusterSetting, Nothing]{path: "/v1/cluster/settings", role: Admin, do: done(Source.SetClusterSetting),
		check: func(s *ClusterSetting) string { return missing("name", s.Name == "") }}
)

func (c *ClusterChange) wrong() string {
	switch {
	case !c.Device.IsValid():
		return "device is missing"
	case !c.Address.IsValid() || c.Address.Port() == 0:
		return "address is missing: want IP:port"
	}
	return ""
}

func (h *handler) removeMember(r *http.Request) (any, error) {
	p := query(r)
	dev := p.addr("device")
	if err := p.close(); err != nil {
		return nil, err
	}
	if !dev.IsValid() {
		return nil, fmt.Errorf("%w: parameter device is missing", ErrInvalid)
	}
	return nil, h.src.RemoveMember(r.Context(), dev)
}

// RemoveMember ends the membership of a device.
func (c *Client) RemoveMember(ctx context.Context, device netip.Addr) error {
	_, err := ask[Nothing](ctx, c, http.MethodDelete, "/v1/cluster/members", url.Values{"device": {device.String()}}, nil)
	return err
}
