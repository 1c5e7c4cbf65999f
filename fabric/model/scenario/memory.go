package scenario

import (
	"bufio"
	"fmt"
	"os"
)

// Sizes for the estimate of memory, in bytes.
const (
	perPort  = 2600 // with its eight queues
	perFrame = 48   // in the pool, with what a growing pool leaves behind
	perFlow  = 600
)

// memory estimates what a run may need at most: the fabric, and frames that fill all
// buffers.
func (b *builder) memory() int64 {
	fab := b.fabric
	switches := int64(len(fab.Edge) + len(fab.Mid) + len(fab.Core))
	hosts := int64(len(fab.Hosts))
	frame := int64(b.f.NIC.MTU) + 48
	if b.f.NIC.MTU == 0 {
		frame = 1048
	}
	buffer := int64(b.f.Switch.Buffer)
	if buffer == 0 {
		buffer = 32 << 20
	}
	need := int64(len(fab.Links))*2*perPort + switches*hosts*4 + switches*(buffer/frame)*perFrame
	for i := range b.f.Traffic {
		if b.f.Traffic[i].Kind == "all-to-all" {
			need += hosts * hosts * perFlow
		}
	}
	return need
}

// available gives the memory that the machine can spare, 0 if it does not say.
func available() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var kb int64
		if _, err := fmt.Sscanf(sc.Text(), "MemAvailable: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}
