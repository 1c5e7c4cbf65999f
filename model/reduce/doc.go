// Package reduce lets the hosts of a job sum vectors over the fabric: in its switches, which
// combine what comes from below and copy the result down again, or without them round a ring of
// hosts.
//
// In the network a vector travels in chunks of 244 numbers. A switch of the job's tree has so many
// slots, each in two versions; a chunk of a slot is sent by a host only when it has the result of
// the slot's last one, so that a version is free when it is written again. A frame that is lost is
// sent again by the host that waits for its result; who has the result answers with it. Frames
// carry the numbers, so that sums are verified, not assumed.
//
// The forms are those of SwitchML (NSDI 2021) and NetReduce (ASPLOS 2023); the frame is ours.
package reduce
