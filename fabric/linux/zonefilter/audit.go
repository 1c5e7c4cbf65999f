package zonefilter

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/openinof/inof/hardzone"
)

// Audit implements hardzone.Dataplane.
func (f *Filter) Audit() (out hardzone.Audited, err error) {
	out.Hosts, out.Pairs = len(f.hosts), len(f.pairs)
	return out, errors.Join(audit(f.tables[tableHosts], f.hosts, &out), audit(f.tables[tablePairs], f.pairs, &out))
}

// audit repairs one table: what is missing or wrong is put before what is foreign goes.
func audit[K, V comparable](m *ebpf.Map, want map[K]V, out *hardzone.Audited) error {
	have := make(map[K]V, len(want))
	keys, values := make([]K, 4096), make([]V, 4096)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			have[keys[i]] = values[i]
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return err
		}
	}
	var errs []error
	for k, v := range want {
		is, there := have[k]
		switch {
		case !there:
			out.Missing++
		case is != v:
			out.Wrong++
		default:
			continue
		}
		errs = append(errs, m.Put(&k, &v))
	}
	for k := range have {
		if _, wanted := want[k]; !wanted {
			out.Foreign++
			errs = append(errs, gone(m.Delete(&k)))
		}
	}
	return errors.Join(errs...)
}
