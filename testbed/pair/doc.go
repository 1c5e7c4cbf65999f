// Package pair has end-to-end tests of fabrics with two reflectors: the topology
// labs/pair.clab.yml in namespaces, with the real programs on real links. Reflectors
// are killed one after the other and together, cut off, and given different zones; the
// sessions run once more over mutual TLS, with certificates that are strange, renewed,
// revoked, or not for the device that shows them.
//
// Every notice that any host is told is looked at: what must come comes once, and
// nothing else does.
package pair
