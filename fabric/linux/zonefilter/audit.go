package zonefilter

import (
	"errors"

	"github.com/cilium/ebpf"

	"github.com/openinof/inof/hardzone"
)

// Audit implements hardzone.Dataplane.
func (f *Filter) Audit() (out hardzone.Audited, err error) {
	err = f.rows.audit(f.tables, &out)
	if out.Repaired() > 0 {
		err = errors.Join(err, f.renewEdition())
	}
	return out, err
}

// audit repairs one table: what is missing or wrong is put before what is foreign goes.
func audit[K, V comparable](m *ebpf.Map, want map[K]V, out *hardzone.Audited) error {
	have, err := read[K, V](m, len(want))
	if err != nil {
		return err
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
