// Package yang has the YANG modules of iNOF, for those who ask a device for them and for
// packages. openinof-inof.yang is written from the table of package telemetry; the other has
// what happens and what can be ordered.
package yang

import "embed"

// Files has the modules, each as NAME.yang.
//
//go:embed *.yang
var Files embed.FS

// Module is one YANG module.
type Module struct{ Name, Revision, Namespace string }

// Modules are those there are.
func Modules() []Module {
	return []Module{
		{"openinof-inof", "2026-11-22", "urn:openinof:yang:inof"},
		{"openinof-inof-operations", "2026-11-22", "urn:openinof:yang:inof-operations"},
	}
}

// Text gives what a module says, of Modules or of Netconf.
func Text(name string) (string, error) {
	b, err := Files.ReadFile(name + ".yang")
	if err != nil {
		return netconfText(name)
	}
	return string(b), nil
}
