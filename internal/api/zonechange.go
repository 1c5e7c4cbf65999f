package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/openinof/inof/zone"
)

// ZoneDo is what is done to a zone.
type ZoneDo string

// The values of ZoneOrder.Do.
const (
	ZoneAdd       ZoneDo = "add"
	ZoneRemove    ZoneDo = "remove"
	MembersAdd    ZoneDo = "add-members" // those that are there already are no error
	MembersRemove ZoneDo = "remove-members"
)

// ZoneOrder asks for one change of one zone.
type ZoneOrder struct {
	Do      ZoneDo
	Name    string
	Members []string
	DryRun  bool // change nothing, and say what hosts would be told
}

// ZoneChanged is what was done, or would be.
type ZoneChanged struct {
	Zone    string   `json:"zone"`
	Added   []string `json:"added"`   // members
	Removed []string `json:"removed"` // members
	Present []string `json:"present"` // members that were to be added and were there
	DryRun  bool     `json:"dry_run"`
	// Impact is what hosts would be told; of a dry run only.
	Impact *zone.Impact `json:"impact,omitempty"`
}

// zoneEndpoint reads an order and has it done.
func (h *handler) zoneEndpoint(do ZoneDo) endpoint {
	return func(r *http.Request) (any, error) {
		o, err := zoneOrder(r, do)
		if err != nil {
			return nil, err
		}
		c, err := h.src.ChangeZone(r.Context(), o)
		Some(&c.Added)
		Some(&c.Removed)
		Some(&c.Present)
		if c.Impact != nil {
			Some(&c.Impact.Told)
		}
		return c, err
	}
}

func zoneOrder(r *http.Request, do ZoneDo) (ZoneOrder, error) {
	o := ZoneOrder{Do: do}
	if do == ZoneRemove {
		p := query(r)
		o.Name, o.DryRun = p.text("name"), p.choice("dry_run", "true", "false") == "true"
		if err := p.close(); err != nil {
			return o, err
		}
		if o.Name == "" {
			return o, fmt.Errorf("%w: parameter name is missing", ErrInvalid)
		}
		return o, nil
	}
	b, err := named(r, do != ZoneAdd)
	o.Name, o.Members, o.DryRun = b.Name, b.Members, b.DryRun
	return o, err
}

// ChangeZone changes a zone, or says what that would do.
func (c *Client) ChangeZone(ctx context.Context, o ZoneOrder) (ZoneChanged, error) {
	method, path, q := http.MethodPost, "/v1/zones", url.Values{}
	var body any = NamedMembers{o.Name, o.Members, o.DryRun}
	switch o.Do {
	case ZoneRemove:
		method, body = http.MethodDelete, nil
		q.Set("name", o.Name)
		if o.DryRun {
			q.Set("dry_run", "true")
		}
	case MembersAdd:
		path = "/v1/zones/members"
	case MembersRemove:
		method, path = http.MethodDelete, "/v1/zones/members"
	}
	return ask[ZoneChanged](ctx, c, method, path, q, body)
}

// AddZone makes a zone.
func (c *Client) AddZone(ctx context.Context, name string, members []string) error {
	_, err := c.ChangeZone(ctx, ZoneOrder{Do: ZoneAdd, Name: name, Members: members})
	return err
}

// RemoveZone removes a zone.
func (c *Client) RemoveZone(ctx context.Context, name string) error {
	_, err := c.ChangeZone(ctx, ZoneOrder{Do: ZoneRemove, Name: name})
	return err
}

// AddMembers adds members to a zone.
func (c *Client) AddMembers(ctx context.Context, name string, members []string) error {
	_, err := c.ChangeZone(ctx, ZoneOrder{Do: MembersAdd, Name: name, Members: members})
	return err
}

// RemoveMembers removes members from a zone.
func (c *Client) RemoveMembers(ctx context.Context, name string, members []string) error {
	_, err := c.ChangeZone(ctx, ZoneOrder{Do: MembersRemove, Name: name, Members: members})
	return err
}
