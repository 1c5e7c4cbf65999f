package dissect

import (
	"os"
	"testing"

	"github.com/openinof/inof/testbed/labtest"
)

var suite = labtest.New("dissect")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
