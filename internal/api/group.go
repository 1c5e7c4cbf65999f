package api

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// giveToGroup hands a file to a group, named or numbered; an empty name leaves it.
func giveToGroup(path, group string) error {
	if group == "" {
		return nil
	}
	gid, err := strconv.Atoi(group)
	if err != nil {
		g, err := user.LookupGroup(group)
		if err != nil {
			return fmt.Errorf("management.group: %q is no group of this machine: make it (groupadd --system %s) or name another", group, group)
		}
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return fmt.Errorf("management.group: %q has the number %q", group, g.Gid)
		}
	}
	if err := os.Chown(path, -1, gid); err != nil {
		return fmt.Errorf("management.group: the socket cannot be given to group %q, of which the daemon's user must be a member: %w", group, err)
	}
	return nil
}
