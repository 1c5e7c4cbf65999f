// Package snsd is the format in which switches and storage hosts speak (SNSD,
// Storage Network Smart Discovery): the organizational TLV by which a host
// registers over LLDP, and the NTS frames (ethertype 0x88A7) that carry notices,
// acks and zone queries. It also holds the host agent's own logic.
//
// It is the last link of the chain: hostnotify decides what a host must be told,
// this package says it in bytes. The format is the one of the existing Linux host
// agent (nvme-snsd); all integers are big-endian.
package snsd
