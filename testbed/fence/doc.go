// Package fence is the judge of fencing: no copy of a write that is still under way may reach the media
// after a later write was acknowledged.
//
// One virtual machine with Debian's kernel boots once and plays many rounds. In it are a host, two planes
// of two switches each, and an array, whose disk is a program that logs each write and can hold one. A
// round: a process writes A to block 0 while its path holds copies at one place, the fault strikes, and
// that process writes B as soon as A is acknowledged over the other path. A write is lost when block 0
// holds A after B was acknowledged. The writer is no part of the agent, so it waits for nothing
// that the agent does.
//
// The raw cases strike without daemons, by the mechanisms that a fence is made of: they show that the
// judge sees losses where there are any. The rounds have real daemons and agents act.
package fence
