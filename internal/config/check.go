package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/openinof/inof/zone"
)

// Check reads the file at path as the daemon would with what is given beside it, a configuration
// with the zone file it names, or a zone file alone, and says in a line or two what it holds.
// The configuration is nil for a zone file. The error has every problem of all files read.
func Check(path string, given *Given) (text string, c *Config, err error) {
	var data []byte
	if path != NoFile {
		data, err = readLimited(path, MaxZoneFileSize)
	}
	if err != nil {
		return "", nil, err
	}
	if isZoneFile(data) {
		// Which rules will count is up to the configuration; the wider ones here.
		set, err := ParseZones(path, data, zone.Rules{AllowLoopback: true})
		if err != nil {
			return "", nil, err
		}
		return zoneSummary(path, set), nil, nil
	}
	c, err = LoadWith(path, given)
	if err != nil {
		return "", nil, err
	}
	if keys := c.Session.TLS.Keys; keys != nil {
		for _, w := range keys.Warnings(time.Now()) {
			text += path + ": warning: " + w + "\n"
		}
	}
	if l := &c.Log.Syslog; l.Encrypted() {
		if _, err := l.TLS(); err != nil { // the daemon runs without, and warns
			return "", nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, w := range slices.Concat(c.Session.Warnings(), c.openToIDs(), c.ExposedSecrets(), c.UnknownVariables()) {
		text += path + ": warning: " + w + "\n"
	}
	text += fmt.Sprintf("%s: good: device %s (%s), %s, %d settings", path, c.Device.ID, c.Device.Name, c.Device.Roles, len(c.Settings()))
	if c.Zones.File == "" {
		return text, c, nil
	}
	set, err := LoadZones(c.Zones.File, c.ZoneRules())
	if errors.Is(err, fs.ErrNotExist) {
		return text + "\n" + c.Zones.File + ": does not exist yet, no zones are configured", c, nil
	}
	if err != nil {
		return "", nil, err
	}
	return text + "\n" + zoneSummary(c.Zones.File, set), c, nil
}

// ZoneRules are the rules for zones on this device.
func (c *Config) ZoneRules() zone.Rules {
	return zone.Rules{AllowLoopback: c.Device.AllowLoopback, BoundNQNs: c.Zones.BoundNQNs}
}

func zoneSummary(path string, set zone.Set) string {
	members := 0
	for _, z := range set.Zones {
		members += len(z.Members)
	}
	return bareNQNs(path, set) + fmt.Sprintf("%s: good: %d zones with %d members", path, len(set.Zones), members)
}

// mostBare bounds how many members by NQN alone are warned of one by one.
const mostBare = 8

// bareNQNs warns of members that name whoever says an NQN.
func bareNQNs(path string, set zone.Set) string {
	var text string
	all := 0
	for i := range set.Zones {
		for _, m := range set.Zones[i].Bare() {
			if all++; all <= mostBare {
				text += fmt.Sprintf("%s: warning: zone %s: %s is any host that says so; bind it: %s at DEVICE, DEVICE/PORT or a prefix\n", path, set.Zones[i].Name, m, m)
			}
		}
	}
	if all > mostBare {
		text += fmt.Sprintf("%s: warning: %d more members are NQNs without a place\n", path, all-mostBare)
	}
	return text
}

// isZoneFile tells a zone file from a configuration: its `zones` is a list, or
// the only thing there is.
func isZoneFile(data []byte) bool {
	p := newParser("", nil)
	n := resolve(p.document(data))
	zones := resolve(find(n, "zones"))
	return zones != nil && (zones.Kind == yaml.SequenceNode || len(n.Content) == 2)
}
