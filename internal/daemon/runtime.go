package daemon

import (
	"os"
	"runtime"

	"github.com/openinof/inof/internal/cgroup"
)

// TuneRuntime sets up the runtime of Go for a process whose worst answers count, within the memory
// limit of its control group.
func TuneRuntime(limit cgroup.Limit) {
	processors()
	ballast = make([]byte, limitMemory(limit, os.Getenv("GOMEMLIMIT")))
}

// ballast is memory that is taken and never used, so that the kernel gives none for it: the
// collector of memory begins when as much has been allocated as is in use, which this counts as. In
// a small heap it would begin every second or two, and while it runs, 20 ms with 26 MiB in use, its
// threads and those of the daemon share the processors.
var ballast []byte

// Ballast is how many bytes of what counts as in use are so by nobody.
func Ballast() uint64 { return uint64(len(ballast)) }

// processors lets twice as many goroutines run at once as there are processors, where these are
// fewer than four, unless the variable GOMAXPROCS says how many.
//
// Go looks for what has come from the network when one that runs goroutines has no other left, and
// else every 10 ms. With two of them a fault waited in its socket for so long, and longer, while
// the owner of the state had one and the collector of memory the other. Now there is one that has
// nothing to do and looks, and the kernel divides the processors. More would not be better: a
// quarter of them marks memory.
func processors() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n < 4 {
		runtime.GOMAXPROCS(min(2*n, 4))
	}
}
