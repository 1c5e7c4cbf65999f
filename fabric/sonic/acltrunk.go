package sonic

import (
	"fmt"
	"slices"
	"strings"
)

// trunks are the PortChannels of the configuration, by their members (PORTCHANNEL_MEMBER).
// orchagent binds a table to no member, but to its PortChannel (getAclBindPortId); rules name
// members all the same, for frames come in at these.
type trunks map[string]string

// readTrunks reads which ports are members.
func (a *aclDB) readTrunks() error {
	keys, err := a.config.scan("PORTCHANNEL_MEMBER|*")
	if err != nil {
		return err
	}
	a.trunks = make(trunks)
	for _, k := range keys {
		trunk, port, ok := strings.Cut(strings.TrimPrefix(k, "PORTCHANNEL_MEMBER|"), "|")
		if ok {
			a.trunks[port] = trunk
		}
	}
	return nil
}

// points are what the tables are bound to, so that frames from these ports are judged.
func (t trunks) points(ports []string) []string {
	list := make([]string, 0, len(ports))
	for _, p := range ports {
		if trunk := t[p]; trunk != "" {
			p = trunk
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// mixed is the error of a member whose PortChannel has others that are not to be filtered: what
// is bound to it would drop theirs.
func (t trunks) mixed(port string, ports []string) error {
	if t[port] == "" {
		return nil
	}
	for other, trunk := range t {
		if trunk == t[port] && !slices.Contains(ports, other) {
			return fmt.Errorf("port %s is not filtered: %s of the same %s is no access port, and SONiC filters a PortChannel as a whole; make all of its members access ports", port, other, trunk)
		}
	}
	return nil
}
