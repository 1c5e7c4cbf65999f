package cluster

// keptRequests is how many outcomes are remembered for changes that are repeated.
const keptRequests = 4096

// dedup remembers the outcomes of the last changes. It is part of the replicated
// state: all members remember the same.
type dedup struct {
	results map[RequestID]Result
	order   []RequestID // oldest first
	trimmed uint64      // index of the last outcome that was forgotten
}

func newDedup() dedup { return dedup{results: map[RequestID]Result{}} }

// seen gives the outcome of a change that was made before. One that arose before
// outcomes were forgotten may have been: it is refused.
func (d *dedup) seen(e *Entry) (Result, bool) {
	if res, ok := d.results[e.ID]; ok {
		res.Again = true
		return res, true
	}
	if e.Since < d.trimmed {
		return Result{Index: d.trimmed, Refused: refuse(CodeExpired,
			"the change arose at entry %d and outcomes up to entry %d are forgotten: look whether it was made, and make it anew", e.Since, d.trimmed)}, true
	}
	return Result{}, false
}

func (d *dedup) add(id RequestID, res Result) {
	d.results[id] = res
	d.order = append(d.order, id)
	if len(d.order) <= keptRequests {
		return
	}
	old := d.order[0]
	d.order = d.order[1:]
	d.trimmed = max(d.trimmed, d.results[old].Index)
	delete(d.results, old)
}
