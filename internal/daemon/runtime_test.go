package daemon

import (
	"runtime"
	"testing"
)

func TestProcessorsAreTwiceAsManyWhereTheyAreFew(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for _, tt := range []struct {
		env       string
		have, get int
	}{{"", 1, 2}, {"", 2, 4}, {"", 3, 4}, {"", 4, 4}, {"", 16, 16}, {"2", 2, 2}} {
		t.Setenv("GOMAXPROCS", tt.env)
		runtime.GOMAXPROCS(tt.have)
		if processors(); runtime.GOMAXPROCS(0) != tt.get {
			t.Errorf("GOMAXPROCS=%q, %d processors: %d, want %d", tt.env, tt.have, runtime.GOMAXPROCS(0), tt.get)
		}
	}
}
