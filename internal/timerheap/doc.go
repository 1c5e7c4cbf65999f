// Package timerheap orders things by when they are due, so that the earliest is at
// hand, one that moves is moved, and one that goes is taken out without a search: a
// thousand BFD sessions, ten thousand LLDP neighbours, every notice that waits for its
// ack. It is a heap of four children to a node, typed, without the calls through
// interfaces and the allocations of container/heap.
package timerheap
