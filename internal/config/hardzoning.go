package config

import (
	"strings"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/setting"
)

// hardZoningItem is how this switch enforces zones; whether it does is said for the whole fabric
// (zones.hard-zoning).
func (c *Config) hardZoningItem() item {
	h := &c.HardZoning
	keys := values(h.Settings()...)
	keys = append(keys, values(setting.Text("pins", &h.Pins, hardzone.DefaultPins, allowedPath,
		"Directory of a bpf file system where tables and programs outlive the daemon, those of the port guard too. Two daemons of one machine need two.", checkPath).Fixed())...)
	written := false
	keys = append(keys, listed("permit", hardzone.AllowedPermits,
		"What is not storage and passes whoever sends it: addresses of gateways and of the management, ports of TCP and UDP (the way back from "+
			"them too, to ports from 32768 on), IP protocols. ARP, Neighbor Discovery and what is no IP pass by themselves.",
		joined(&h.Permit), func(s *section, it *item) {
			h.Permit = nil
			s.list(it.Key, it.Allowed, func(v string) string {
				p, err := hardzone.ParsePermit(v)
				if err != nil {
					return err.Error()
				}
				h.Permit = append(h.Permit, p)
				return ""
			})
			written = s.has(it.Key)
		}).documented("`["+strings.Join(hardzone.DefaultPermit, ", ")+"]`", ""))
	return part("hard-zoning", keys, func(*section) {
		if !written {
			h.Permit = hardzone.Default().Permit
		}
	})
}
