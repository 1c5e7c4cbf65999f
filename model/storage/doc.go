// Package storage is NVMe-oF-like load on the model: initiators keep a number of
// reads and writes outstanding at each target, over several paths.
//
// A read is a command capsule to the target, its service time, and the data back; a
// write is a capsule, the target's RDMA read of the data, the service time, and a
// completion. The paths of a host are its ports: path k joins port k of an initiator
// with port k of a target. I/O goes round robin over the paths that are up. A path
// goes down when nothing was heard on it for the keep-alive time while I/O waited, or
// when PathDown says so (a notice); its I/O is then issued again on another path.
package storage
