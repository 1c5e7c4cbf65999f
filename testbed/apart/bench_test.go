package apart

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/openinof/inof/internal/netnstest"
)

func TestTheBenchmarkMeasuresEachKindOfFilter(t *testing.T) {
	res, err := Bench(t.Context(), Options{Memberships: []int{1, 300}, Flows: 200, Frames: 200, Rounds: 1, Repeat: 1000})
	if errors.Is(err, fs.ErrPermission) {
		netnstest.Require(t, "eBPF and network namespaces", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range res.Sizes {
		for _, way := range ways {
			if (s.Wire[way].Low <= 0 || s.Driver[way].Low <= 0) && (way != NFTables || len(res.LeftOut) == 0) {
				t.Errorf("%d memberships: %s was not measured", s.Memberships, way)
			}
		}
		if s.Run["xdp permitted"] < s.Run["nothing"] {
			t.Errorf("%+v", s.Run)
		}
	}
}
