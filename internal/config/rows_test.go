package config

import "strings"

// rows are the lines of docs/config.md, those of an entry's keys after its list.
func rows(prefix string, list []item) (out []string) {
	for key, it := range each(prefix, list) {
		if it.derived {
			continue
		}
		out = append(out, it.Row(strings.TrimSuffix(key, it.Key)))
		for i := range it.keys {
			it.keys[i].Restart = it.Restart
		}
		out = append(out, rows(key+"[].", it.keys)...)
	}
	return out
}
