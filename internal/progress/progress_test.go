package progress

import (
	"bytes"
	"testing"
	"time"
)

// Nothing of what is soon done, then a line a second with rate and rest.
func TestProgressHasRateAndRest(t *testing.T) {
	var out bytes.Buffer
	p := To(&out, "trials")
	for i := range 41 {
		p.At(i, 40, time.Duration(i)*250*time.Millisecond)
	}
	want := "8 of 40 trials, 4 a second, about 8s left\n12 of 40 trials, 4 a second, about 7s left\n16 of 40 trials, 4 a second, about 6s left\n" +
		"20 of 40 trials, 4 a second, about 5s left\n24 of 40 trials, 4 a second, about 4s left\n28 of 40 trials, 4 a second, about 3s left\n" +
		"32 of 40 trials, 4 a second, about 2s left\n36 of 40 trials, 4 a second, about 1s left\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	(*Teller)(nil).At(1, 2, time.Hour)
	(&Teller{}).At(1, 2, time.Hour)
}
