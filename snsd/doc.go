// Package snsd is the format in which switches and storage hosts speak (SNSD,
// Storage Network Smart Discovery): the organizational TLV by which a host
// registers over LLDP, and the NTS frames (ethertype 0x88A7) that carry notices,
// acks and zone queries. It also holds the host agent's own logic.
//
// It is the last link of the chain: hostnotify decides what a host must be told,
// this package says it in bytes. The format is the one of the existing Linux host
// agent (nvme-snsd); all integers are big-endian.
//
// # What is tolerated and what is refused
//
// Hosts differ, so reading is lenient where nothing can be misunderstood: padding,
// trailing bytes, unknown sub-TLVs, a missing NQN length, unknown roles and
// protocols (read as unknown and reported as an Oddity). It is strict where a wrong
// reading would tell a host something false: a required sub-TLV that is missing, twice
// there or of another length, mixed address families, a state that is neither active
// nor inactive, and addresses that no storage host can have. One bad root TLV does not
// spoil its packet.
//
// Agent is the host's side as a pure machine: what the existing agent does, and IPv6,
// other protocols and a shutdown LLDPDU besides.
package snsd
