package sonic

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
