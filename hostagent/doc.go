// Package hostagent is what runs on a storage host: it tells the access switch who is there, takes
// its notices, and acts on the host's NVMe controllers so that I/O leaves a path the moment it is
// called dead.
//
//	Agent  one loop for frames, links and addresses; package snsd decides what is said and acked
//	Actor  what is done about a notice; package hostkernel does it
//
// The two are coupled by a table with one entry a path, the newest word about it: a storm of
// notices costs no more memory than there are paths, and what blocks in the kernel blocks nothing
// here.
//
// Silence, a lost link to the switch, a restart or a change of configuration disconnects nothing.
// Only a notice with reason 4, 5 or 6 does, only a controller that is the agent's own or that the
// operator named, and never the last path of a subsystem unless the operator wants that.
// A sick path that is to be avoided is connected anew, where there is another one.
package hostagent
