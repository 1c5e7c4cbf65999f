package netnstest

import (
	"os"
	"path/filepath"
	"testing"
)

// What is missing stands in the list with the package that has it; a program of unknown
// origin is a mistake in the test.
func TestASkipSaysWhatToInstall(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	t.Setenv(EnvSkipped, list)
	t.Setenv("INOF_REQUIRE_NETNS", "")
	t.Setenv("PATH", t.TempDir())
	v := verdict{}
	if Programs(&v, "nft", "tshark"); !v.skipped || v.failed {
		t.Errorf("nft is not installed: %+v", v)
	}
	LeftOut(&v, "packet loss", "nft")
	LeftTo(&v, "make model")
	b, err := os.ReadFile(list)
	want := "internal/netnstest\tTestPlayed\tnft is not installed\tnftables\n" +
		"internal/netnstest\tTestPlayed\tleaves out packet loss\tnftables\n" +
		"internal/netnstest\tTestPlayed\tmake model\tmake model\n"
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
	t.Setenv("INOF_REQUIRE_NETNS", "1")
	for what, try := range map[string]func(testing.TB){
		"a missing program": func(t testing.TB) { Programs(t, "nft") },
		"a part left out":   func(t testing.TB) { LeftOut(t, "packet loss", "nft") },
		"an unknown one":    func(t testing.TB) { Programs(t, "nonesuch") },
	} {
		var v verdict
		if try(&v); !v.failed || v.skipped {
			t.Errorf("%s with INOF_REQUIRE_NETNS=1: %+v", what, v)
		}
	}
}
