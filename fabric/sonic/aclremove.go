package sonic

import (
	"maps"
	"slices"
)

// Remove implements hardzone.Dataplane.
func (a *ACL) Remove() error {
	defer a.Close()
	return a.remove()
}

// remove takes all of ours out of the database: ports first, so that nothing is dropped meanwhile.
func (a *ACL) remove() error {
	tables, err := a.config.hashes([]string{"ACL_TABLE|" + aclTable4, "ACL_TABLE|" + aclTable6})
	if err != nil {
		return err
	}
	for _, table := range []string{aclTable4, aclTable6} {
		if len(tables["ACL_TABLE|"+table]) == 0 {
			continue
		}
		if _, err := a.config.all([][]string{{"HSET", "ACL_TABLE|" + table, "ports@", ""}}); err != nil {
			return err
		}
		rows, err := a.config.rowsOf(table)
		if err != nil {
			return err
		}
		if err := a.del(append(slices.Collect(maps.Keys(rows)), "ACL_TABLE|"+table, "ACL_TABLE_TYPE|"+table)); err != nil {
			return err
		}
	}
	return nil
}

// RemoveACL ends the enforcement of a process that is gone.
func RemoveACL(address string) error {
	a := &ACL{config: &db{address: address, number: configDB}}
	defer a.config.close()
	return a.remove()
}

// Close implements hardzone.Dataplane: what is in the database stays in force.
func (a *ACL) Close() error {
	for _, d := range []*db{a.config, a.state, a.counters, a.asic} {
		d.close()
	}
	return nil
}
