// Package fencing obtains level "array" of a fence: no copy of a write that a host has sent over a path
// can still reach the media, so that the host may send the write again over another path.
//
// On an array with the kernel's own target, Target blocks the frames of one address pair (host,
// array) both ways, ends the pair's connections, waits until the kernel has released them, which it
// does after their last command, and only then answers. The host leaves the path and confirms; then
// the block is lifted. Service is its door: TCP and TLS 1.3, one request a connection. A caller may
// have only paths of its own proven addresses fenced.
//
// On a host, Asker asks the array's Service over a path that lives, and Reset has a living
// controller reset the others (Cross-Controller Reset, NVMe Base 2.3, 5.4.3). Both are Fencers of
// package hostagent.
//
// The order of Target's steps covers each place where a copy can wait. Host and network: frames
// that come while the block stands are dropped, later ones find no connection. Receive queue: what
// the target's worker still reads is executed before the connection is released, hence before the
// answer; what it does not read is thrown away (Linux 5.16 and later; earlier ones execute it,
// before the release as well). Execution: the release waits for it. The array's reset of the
// connection does not reach the host before the answer, because the block drops it first.
package fencing
