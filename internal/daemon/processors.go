package daemon

import (
	"os"
	"runtime"
)

// Processors lets twice as many goroutines run at once as there are processors, where these are
// fewer than four, unless the variable GOMAXPROCS says how many.
//
// Go looks for what has come from the network when one that runs goroutines has no other left, and
// else every 10 ms. With two of them a fault waited in its socket for so long, and longer, while
// the owner of the state had one and the collector of memory the other. Now there is one that has
// nothing to do and looks, and the kernel divides the processors. More would not be better: a
// quarter of them marks memory.
func Processors() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n < 4 {
		runtime.GOMAXPROCS(min(2*n, 4))
	}
}
