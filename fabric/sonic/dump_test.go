package sonic

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openinof/inof/internal/netnstest"
)

var update = flag.Bool("update", false, "write testdata/switch.json anew, from the switch that runs")

// dump is what the databases of a switch have: of ports with a watchdog (Ethernet0), without one
// (Ethernet20) and without queues that are looked after (Ethernet24). Ethernet0 is in a storm.
type dump map[string]map[string]map[string]string // by database and key

const dumpFile = "testdata/switch.json"

func readDump(t testing.TB) (d dump) {
	t.Helper()
	b, err := os.ReadFile(dumpFile)
	noErr(t, err)
	noErr(t, json.Unmarshal(b, &d))
	return d
}

// load writes a dump into a server.
func (d dump) load(t testing.TB, address string) {
	for number, keys := range d {
		c := &db{address: address, number: int(number[0] - '0')}
		for key, fields := range keys {
			args := []string{"HSET", key}
			for f, v := range fields {
				args = append(args, f, v)
			}
			set(t, c, args...)
		}
		c.close()
	}
}

var dumpedPort = regexp.MustCompile(`Ethernet(0|20|24)(\D|$)`)

// take reads what is dumped of a running switch.
func take(t testing.TB, address string) dump {
	out := dump{}
	open := func(n int) *db { c := &db{address: address, number: n}; t.Cleanup(c.close); return c }
	keep := func(n int, keys ...string) {
		rows, err := open(n).hashes(keys)
		noErr(t, err)
		number := string(rune('0' + n))
		if out[number] == nil {
			out[number] = map[string]map[string]string{}
		}
		for k, f := range rows {
			for name := range f {
				if strings.HasSuffix(k, "_MAP") && !dumpedPort.MatchString(name) || strings.HasSuffix(name, "_time") || strings.HasSuffix(name, "GRESS_ACL") || name == "DEBUG_STORM" {
					delete(f, name)
				}
			}
			if len(f) > 0 {
				out[number][k] = f
			}
		}
	}
	matching := func(n int, pattern string) (keys []string) {
		all, err := open(n).scan(pattern)
		noErr(t, err)
		return slices.DeleteFunc(all, func(k string) bool { return !dumpedPort.MatchString(k) })
	}
	maps4 := []string{"COUNTERS_PORT_NAME_MAP", "COUNTERS_QUEUE_NAME_MAP", "COUNTERS_PG_NAME_MAP"}
	keep(countersDB, maps4...)
	for _, m := range maps4 {
		for _, oid := range out["2"][m] {
			keep(countersDB, "COUNTERS:"+oid)
			if m == "COUNTERS_PORT_NAME_MAP" {
				keep(asicDB, "ASIC_STATE:SAI_OBJECT_TYPE_PORT:"+oid)
			}
		}
	}
	keep(applDB, matching(applDB, "PORT_TABLE:*")...)
	keep(stateDB, append(matching(stateDB, "PORT_TABLE|*"), "ACL_STAGE_CAPABILITY_TABLE|INGRESS", "ACL_STAGE_CAPABILITY_TABLE|EGRESS")...)
	for _, pattern := range []string{"PORT|*", "QUEUE|*", "PORT_QOS_MAP|*", "PFC_WD|*"} {
		keep(configDB, matching(configDB, pattern)...)
	}
	keep(configDB, "WRED_PROFILE|AZURE_LOSSLESS")
	return out
}

// The dump has what a real switch has: each field, by its name.
func TestTheDumpIsOfARealSwitch(t *testing.T) {
	sw := netnstest.SONiC(t)
	queue := "COUNTERS:" + sw.DB(t, countersDB, "hget", "COUNTERS_QUEUE_NAME_MAP", "Ethernet0:3")
	sw.Stat(t, "port", "Ethernet0", "SAI_PORT_STAT_IF_IN_UCAST_PKTS", "123456789", "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS", "4321", "SAI_PORT_STAT_IF_IN_ERRORS", "18",
		"SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS", "1", "SAI_PORT_STAT_IF_IN_BROADCAST_PKTS", "21", "SAI_PORT_STAT_IF_IN_MULTICAST_PKTS", "4300", "SAI_PORT_STAT_PFC_3_RX_PKTS", "998877")
	sw.Stat(t, "queue", "Ethernet0:3", "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", "555")
	sw.DB(t, countersDB, "hset", queue, "DEBUG_STORM", "enabled")
	eventually(t, "the storm and the counters are read", func() bool {
		return sw.DB(t, countersDB, "hget", queue, watchdogStatus) == watchdogStormed && sw.DB(t, countersDB, "hget", queue, queueMarked) == "555"
	})
	names := func(d dump) (list []string) {
		for number, keys := range d {
			for key, fields := range keys {
				if number == "1" || strings.HasPrefix(key, "COUNTERS:") {
					key, _, _ = strings.Cut(key, ":oid:") // numbered by the order of creation
				}
				for f := range maps.Keys(fields) {
					list = append(list, number+" "+key+" "+f)
				}
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	got := take(t, sw.Redis())
	if !*update { // plugins of the counters write some fields later than others
		want := names(readDump(t))
		for end := time.Now().Add(peerWait); !slices.Equal(want, names(got)) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			got = take(t, sw.Redis())
		}
	}
	sw.DB(t, countersDB, "hdel", queue, "DEBUG_STORM")
	if *update {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", " ")
		noErr(t, e.Encode(got))
		noErr(t, os.WriteFile(dumpFile, b.Bytes(), 0o644))
	}
	if d := cmp.Diff(names(readDump(t)), names(got)); d != "" {
		t.Errorf("testdata is not what a switch has (-update): %s", d)
	}
}
