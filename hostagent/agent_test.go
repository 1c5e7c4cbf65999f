package hostagent

import (
	"fmt"
	"testing"

	"github.com/openinof/inof/fabric"
)

// A frame that went with the carrier is no error of the agent: the protocol repeats it.
func TestWhatIsSaidOfFramesNotSent(t *testing.T) {
	for want, err := range map[string]error{
		"dropped": fabric.ErrPortBusy, "error": fabric.ErrFrameSize, "": fabric.ErrPortDown,
	} {
		if got := sendEvent(fmt.Errorf("interface %q: %w", "eth1", err)); got != want {
			t.Errorf("%v is told as %q, want %q", err, got, want)
		}
	}
}
