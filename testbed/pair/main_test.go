package pair

import (
	"fmt"
	"os"
	"testing"

	"github.com/openinof/inof/testbed/labtest"
)

var suite = labtest.New("pair")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// errorf is an error unless ok.
func errorf(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
