package e2e

import (
	"os"
	"testing"

	"github.com/openinof/inof/testbed/labtest"
)

var suite = labtest.New("e2e")

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }
