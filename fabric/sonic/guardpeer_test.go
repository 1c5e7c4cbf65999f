package sonic

import (
	"strings"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/netnstest"
)

func TestTheASICKeepsLinkFramesOnTheirLink(t *testing.T) {
	sw := netnstest.SONiC(t)
	g, err := OpenGuard(sw.Redis())
	noErr(t, err)
	t.Cleanup(func() { noErr(t, g.Close()); noErr(t, RemoveGuard(sw.Redis())) })
	ports := []fabric.GuardedPort{{Name: "Ethernet0"}, {Name: "Ethernet4"}}
	for _, st := range g.SetPorts(ports) {
		if st.Err != nil || st.Way != "asic" {
			t.Errorf("%+v", st)
		}
	}
	types := func() (list []string) {
		for _, key := range strings.Fields(sw.DB(t, asicDB, "keys", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_ENTRY:*")) {
			row := sw.DB(t, asicDB, "hmget", key, "SAI_ACL_ENTRY_ATTR_FIELD_ETHER_TYPE", "SAI_ACL_ENTRY_ATTR_ACTION_PACKET_ACTION")
			if f := strings.Fields(row); len(f) > 1 && strings.HasSuffix(row, "SAI_PACKET_ACTION_DROP") {
				list = append(list, f[0])
			}
		}
		return list
	}
	has := func() bool {
		all := strings.Join(types(), " ")
		return strings.Contains(all, "34983&") && strings.Contains(all, "35020&") // 0x88A7, 0x88CC
	}
	if !has() {
		t.Errorf("in the ASIC: %q", types())
	}
	eventually(t, "events are heard", func() bool { return sw.DB(t, configDB, "pubsub", "numpat") != "0" })
	sw.DB(t, configDB, "del", "ACL_TABLE|"+guardTable)
	eventually(t, "deleted, the rules are back", func() bool { return has() && sw.DB(t, configDB, "exists", "ACL_TABLE|"+guardTable) == "1" })
	g.SetPorts(nil)
	eventually(t, "nothing is left", func() bool { return sw.DB(t, configDB, "keys", "*INOF_GUARD*") == "" && !has() })
}
