// Package bpfpins keeps eBPF programs and maps of the daemon in a bpf file system, so that they
// outlive it: hard zoning (zonefilter) and the port guard (portguard).
package bpfpins
