package workload

import (
	"testing"

	"github.com/openinof/inof/model"
)

func TestW3FlowsAreTheReferenceOnes(t *testing.T) {
	flows := Poisson(WebSearch, 320, 100*model.Gbps, 0.5, model.Millisecond, 1_000_003)
	total := int64(0)
	for _, f := range flows {
		total += f.Bytes
	}
	if len(flows) != 1210 || total != 2_258_106_375 {
		t.Errorf("%d flows of %d bytes, want 1210 of 2258106375", len(flows), total)
	}
}
