package daemon

// turns is a lock that is held while something is written or another goroutine is asked: in a test
// whose time is made up the clock goes on while somebody waits for it, as it does not for a
// sync.Mutex.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

func (t turns) Lock()   { t <- struct{}{} }
func (t turns) Unlock() { <-t }
