package sonic

import (
	"maps"
	"slices"
	"time"
)

// Remove implements hardzone.Dataplane.
func (a *ACL) Remove() error {
	defer a.Close()
	return a.dropTables(aclTable4, aclTable6)
}

// RemoveACL ends the enforcement of a process that is gone.
func RemoveACL(address string) error {
	a := newACLDB(address)
	defer a.Close()
	return a.dropTables(aclTable4, aclTable6)
}

// lostTables reports whether another program has deleted a table of ours. What is left of its rules goes
// too: orchagent has dropped them from the ASIC, and STATE_DB goes on to have them as active.
func (a *ACL) lostTables() (lost bool, err error) {
	for _, table := range []string{aclTable4, aclTable6} {
		have, err := a.config.hashes([]string{"ACL_TABLE|" + table})
		if err != nil {
			return lost, err
		}
		if len(have["ACL_TABLE|"+table]) > 0 {
			continue
		}
		lost = true
		rows, err := a.config.rowsOf(table)
		if err == nil {
			err = a.del(slices.Collect(maps.Keys(rows)))
		}
		if err != nil {
			return lost, err
		}
		for until := time.Now().Add(aclWait); ; time.Sleep(aclPause) {
			left, err := a.state.scan("ACL_RULE_TABLE|" + table + "|*")
			if err != nil || len(left) == 0 || time.Now().After(until) {
				break
			}
		}
	}
	return lost, nil
}
