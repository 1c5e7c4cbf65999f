// Package model is the embedded dataplane: lossless Ethernet switches, links and
// RDMA NICs simulated frame by frame in integer picoseconds.
//
// It is the simulated sibling of fabric/linux. An engineer uses it by itself to
// size headroom and thresholds, to reproduce a PFC storm, a deadlock or a victim
// flow; the scenarios above it place the control plane's machines on top.
//
// A Network describes nodes, links and profiles; Build turns it into a Sim, which
// runs the events of one seed in one order on any machine. What happens to a frame:
//
//	NIC pacing -> wire -> ingress accounting -> route -> egress queue -> scheduler -> wire -> NIC
//
// How it is made fast: state lives in flat slices of small structs addressed by
// 32-bit indices; a frame is 32 bytes in a pool; a link holds its frames in flight
// as a list so that the event queue holds one entry a link and one a busy port,
// never one a frame; nothing is allocated per event or per frame.
//
// Sources of the rules: IEEE 802.1Qbb (PFC), IEEE 802.3 annex 31B (PAUSE), DCQCN
// (SIGCOMM 2015), and, for thresholds and defaults, the data centre switch guides
// quoted in docs/model.md.
package model
