package change

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openinof/inof/zone"
)

// AliasPrefix is what the name of an alias stands behind where a member of a zone is written.
const AliasPrefix = "alias:"

// Document is a plan as it is written: lists, members as texts.
type Document struct {
	Aliases []Named    `json:"aliases,omitempty"`
	Zones   []Named    `json:"zones,omitempty"`
	Sets    []NamedSet `json:"zone_sets,omitempty"`
	Active  string     `json:"active,omitempty"`
}

// Named are members under a name.
type Named struct {
	Name    string   `json:"name"`
	Members []string `json:"members"`
}

// NamedSet are zones under a name.
type NamedSet struct {
	Name  string   `json:"name"`
	Zones []string `json:"zones"`
}

// Texts gives the members of a zone as they are written, aliases last.
func (z Zone) Texts() []string {
	out := texts(z.Members)
	for _, a := range z.Aliases {
		out = append(out, AliasPrefix+a)
	}
	return out
}

func texts(list []zone.Member) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = m.String()
	}
	return out
}

// Document gives the written form of a plan; equal plans give equal documents.
func (p *Plan) Document() (d Document) {
	d.Active = p.Active
	for _, name := range slices.Sorted(maps.Keys(p.Aliases)) {
		d.Aliases = append(d.Aliases, Named{name, texts(p.Aliases[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Zones)) {
		d.Zones = append(d.Zones, Named{name, p.Zones[name].Texts()})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Sets)) {
		d.Sets = append(d.Sets, NamedSet{name, append([]string{}, p.Sets[name]...)})
	}
	return d
}

// ParseZone reads the members of a zone as Texts writes them. Whether its aliases are there is for
// Check to say.
func ParseZone(members []string) (z Zone, err error) {
	for _, text := range members {
		if alias, ok := strings.CutPrefix(text, AliasPrefix); ok {
			z.Aliases = append(z.Aliases, alias)
			continue
		}
		m, err := zone.ParseMember(text)
		if err != nil {
			return z, err
		}
		z.Members = append(z.Members, m)
	}
	return z.canonical(), nil
}

// Plan gives the plan that a document writes down. Names that are used twice and members that are
// none are errors; the rest is for Check.
func (d *Document) Plan() (*Plan, error) {
	p := &Plan{Active: d.Active}
	for _, a := range d.Aliases {
		if _, twice := p.Aliases[a.Name]; twice {
			return nil, fmt.Errorf("alias %q: %w", a.Name, zone.ErrDuplicateZone)
		}
		z, err := ParseZone(a.Members)
		switch {
		case err != nil:
			return nil, fmt.Errorf("alias %q: %w", a.Name, err)
		case len(z.Aliases) > 0:
			return nil, fmt.Errorf("alias %q: an alias cannot name alias %q", a.Name, z.Aliases[0])
		}
		p.PutAlias(a.Name, z.Members)
	}
	p.Zones = make(map[string]Zone, len(d.Zones))
	for _, n := range d.Zones {
		if _, twice := p.Zones[n.Name]; twice {
			return nil, fmt.Errorf("zone %q: %w", n.Name, zone.ErrDuplicateZone)
		}
		z, err := ParseZone(n.Members)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", n.Name, err)
		}
		p.Zones[n.Name] = z
	}
	for _, s := range d.Sets {
		if _, twice := p.Sets[s.Name]; twice {
			return nil, fmt.Errorf("zone set %q: %w", s.Name, zone.ErrDuplicateZone)
		}
		p.PutSet(s.Name, s.Zones)
	}
	return p, nil
}

// MarshalJSON writes the document of a plan.
func (p Plan) MarshalJSON() ([]byte, error) { return json.Marshal(p.Document()) }

// UnmarshalJSON is the inverse of MarshalJSON; keys that are unknown are errors.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var d Document
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return err
	}
	read, err := d.Plan()
	if err != nil {
		return err
	}
	*p = *read
	return nil
}
