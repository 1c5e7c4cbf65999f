package linux

import "encoding/binary"

// Netlink and control messages are in the byte order of the machine.

func nativeInt64(b []byte) int64 { return int64(binary.NativeEndian.Uint64(b)) }
