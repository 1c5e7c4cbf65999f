package yang

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
)

// netconf has the modules that NETCONF needs beside ours: those of the IETF as their RFCs print
// them, each of which says under which licence it is, and what we add to its operations.
//
//go:embed netconf/*.yang
var netconf embed.FS

// namespaces of the modules there.
var namespaces = map[string]string{
	"ietf-datastores":         "urn:ietf:params:xml:ns:yang:ietf-datastores",
	"ietf-inet-types":         "urn:ietf:params:xml:ns:yang:ietf-inet-types",
	"ietf-netconf":            "urn:ietf:params:xml:ns:netconf:base:1.0",
	"ietf-netconf-monitoring": "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring",
	"ietf-yang-library":       "urn:ietf:params:xml:ns:yang:ietf-yang-library",
	"ietf-yang-types":         "urn:ietf:params:xml:ns:yang:ietf-yang-types",
	"openinof-inof-netconf":   "urn:openinof:yang:inof-netconf",
}

// Netconf are the modules that a NETCONF server has beside those of Modules, by name.
func Netconf() (out []Module) {
	files, _ := netconf.ReadDir("netconf") // it is embedded
	for _, f := range files {
		name, revision, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".yang"), "@")
		out = append(out, Module{name, revision, namespaces[name]})
	}
	slices.SortFunc(out, func(a, b Module) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// netconfText gives what one of them says.
func netconfText(name string) (string, error) {
	for _, m := range Netconf() {
		if m.Name == name {
			b, err := netconf.ReadFile("netconf/" + m.Name + "@" + m.Revision + ".yang")
			return string(b), err
		}
	}
	return "", fmt.Errorf("there is no module %.100q", name)
}
