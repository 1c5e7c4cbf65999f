package netnstest

import (
	"os"
	"testing"
)

// Required tells whether everything has to be tested: INOF_REQUIRE_NETNS=1.
func Required() bool { return os.Getenv("INOF_REQUIRE_NETNS") == "1" }

// Require skips a test for which something is missing, or fails it; what says what was
// tried. Without an error it does nothing.
func Require(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case Required():
		t.Fatalf("INOF_REQUIRE_NETNS=1, but %s: %v", what, err)
	default:
		t.Skipf("SKIPPED: %s: %v", what, err)
	}
}
