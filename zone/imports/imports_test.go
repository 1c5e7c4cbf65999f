package imports

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

const theMap = `# WWPN, member, what it is
10:00:00:00:c9:2b:c9:0c  192.0.2.1
10000000C92BC90D,192.0.2.2,host2
50:06:01:60:3b:a0:11:22 nqn.2026-11.org.example:array1 at 192.0.2.250
50:06:01:60:3b:a0:11:22 192.0.2.101
2,14 port:192.0.2.250/Ethernet14
fc1/7 port:192.0.2.251/Ethernet7
`

func testMap(t testing.TB) *Map {
	m, err := ParseMap([]byte(theMap), zone.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const cfgshow = `Defined configuration:
 cfg:	DAY	red; blue
 cfg:	NIGHT	red
 zone:	blue	host2; 
		50:06:01:60:3b:a0:11:22; 2,14
 zone:	red	00:02:00:00:00:03:00:01; host1; array
 alias:	array	50:06:01:60:3b:a0:11:22
 alias:	host1	10:00:00:00:c9:2b:c9:0c
 alias:	host2	10:00:00:00:c9:2b:c9:0d

Effective configuration:
 cfg:	DAY
 zone:	blue	10:00:00:00:c9:2b:c9:0d
		50:06:01:60:3b:a0:11:22
`

const zonecreate = `alicreate "array", "50:06:01:60:3b:a0:11:22"
alicreate "host1", "10:00:00:00:c9:2b:c9:0c"
alicreate 'host2', '10:00:00:00:C9:2B:C9:0D'
zonecreate "blue", "host2; 50:06:01:60:3b:a0:11:22"
zoneadd "blue", "2,14"
zonecreate --peerzone "red" -principal "array" -members "host1"
cfgcreate "DAY", "red"
cfgadd "DAY", "blue"
cfgcreate "NIGHT", "red"
cfgenable "DAY"
`

const running = `version 9.3(2)
hostname mds-1
device-alias database
  device-alias name host1 pwwn 10:00:00:00:c9:2b:c9:0c
  device-alias name host2 pwwn 10:00:00:00:c9:2b:c9:0d
device-alias commit
fcalias name array vsan 10
  member pwwn 50:06:01:60:3b:a0:11:22
!Active Zone Database Section for vsan 10
zone name red vsan 10
    member device-alias host1 init
    member fcalias array
zone name blue vsan 10
    member device-alias host2
    member pwwn 50:06:01:60:3b:a0:11:22 target
zoneset name DAY vsan 10
    member red
    member blue
zoneset name NIGHT vsan 10
    member red
zoneset activate name DAY vsan 10
interface fc1/1
  no shutdown
`

func document(t *testing.T, p *change.Plan, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestZonesOfBothMakersAreReadWithTheirAliasesAndSets(t *testing.T) {
	o := Options{Map: testMap(t)}
	want := `{"aliases":[{"name":"array","members":["192.0.2.101","nqn.2026-11.org.example:array1 at 192.0.2.250"]},{"name":"host1","members":["192.0.2.1"]},{"name":"host2","members":["192.0.2.2"]}],` +
		`"zones":[{"name":"blue","members":["192.0.2.101","port:192.0.2.250/Ethernet14","nqn.2026-11.org.example:array1 at 192.0.2.250","alias:host2"]},{"name":"red","members":["alias:array","alias:host1"]}],` +
		`"zone_sets":[{"name":"DAY","zones":["blue","red"]},{"name":"NIGHT","zones":["red"]}],"active":"DAY"}`
	p, err := Brocade([]byte(cfgshow), o)
	if got := document(t, p, err); got != want {
		t.Errorf("cfgshow:\n%s", got)
	}
	p, err = Brocade([]byte(zonecreate), o)
	if got := document(t, p, err); got != want {
		t.Errorf("zonecreate:\n%s", got)
	}
	p, err = MDS([]byte(running), o)
	if got := document(t, p, err); got != strings.Replace(want, `"port:192.0.2.250/Ethernet14",`, "", 1) {
		t.Errorf("MDS:\n%s", got)
	}
	other := strings.ReplaceAll(running, "vsan 10", "vsan 20")
	if p, err = MDS([]byte(running+other), Options{Map: o.Map, VSAN: "20"}); err != nil || len(p.Zones) != 2 {
		// device aliases are of the switch, not of a VSAN: those of the second copy are there
		// already
		if err == nil || !strings.Contains(err.Error(), `device-alias "host1" is there already, in line 4`) {
			t.Errorf("one VSAN of two: %v", err)
		}
	}
}

// An import with errors gives no plan, and each error names its line.
func TestAnImportWithErrorsGivesNothingAndNamesTheLines(t *testing.T) {
	o := Options{Map: testMap(t)}
	for _, c := range []struct {
		read func([]byte, Options) (*change.Plan, error)
		text string
		want []string
	}{
		{Brocade, " zone:\tz\t50:06:01:60:3b:a0:11:99; nobody\n zone:\tz\thost\n rubbish\n cfg:\tc\tx\ncfgenable \"d\"\n",
			[]string{"line 1: zone z: 50:06:01:60:3b:a0:11:99 is not in the map", `line 1: zone z: "nobody" is no alias`, `line 2: zone "z" is there already, in line 1`,
				"line 4: zone set c: there is no zone", `line 5: zone set "d" is to be active`}},
		{Brocade, "zonecreate \"z\", \"a\nzoneadd \"y\", \"a\"\nhello\n", []string{"line 1: zonecreate wants", `line 2: zoneadd: zone "y" is not there yet`, `line 3: "hello" is nothing`}},
		{Brocade, "", []string{"there is no zone"}},
		{Brocade, " zone:\t" + strings.Repeat("z", 64) + "\t2,14\n", []string{"line 1: zone: not a zone name"}},
		{MDS, "zone name z vsan 1\n member fcid 0x010203\n member pwwn 50:06:01:60:3b:a0:11:99\n member interface fc9/9\n member device-alias x\n",
			[]string{"line 2: zone z: members by fcid have no equal here", "line 3: zone z: 50:06:01:60:3b:a0:11:99 is not in the map", "line 4: zone z: fc9/9 is not in the map", `line 5: zone z: "x" is no alias`}},
		{MDS, "zone name a vsan 1\nzone name b vsan 2\n", []string{"several VSANs (1, 2)"}},
		{MDS, "zone name a\n", []string{"line 1: zone name a: no VSAN is named"}},
	} {
		p, err := c.read([]byte(c.text), o)
		var list *Errors
		if p != nil || !errors.As(err, &list) {
			t.Errorf("%q gives %v, %v", c.text, p, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %q is not said:\n%v", c.text, w, err)
			}
		}
	}
	_, err := ParseMap([]byte("10:00:00:00:c9:2b:c9:0c\nx 192.0.2.300\n# good\n"), zone.Rules{})
	if err == nil || !strings.Contains(err.Error(), "line 1: ") || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("map: %v", err)
	}
	many := strings.Repeat("rubbish\n", MaxErrors+5)
	if _, err := Brocade([]byte(many), o); err == nil || !strings.Contains(err.Error(), "and 6 more") {
		t.Errorf("many errors: %.200v", err)
	}
}

// Whoever imports much hears how many lines were read, and of how many zones the members are known.
func TestAnImportTellsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		read         func([]byte, Options) (*change.Plan, error)
		text         string
		lines, zones int
	}{{Brocade, cfgshow, strings.Count(cfgshow, "\n"), 2}, {MDS, running, strings.Count(running, "\n"), 2}} {
		told := map[string][]int{}
		o := Options{Map: testMap(t), VSAN: "10", Left: func(unit string) func(int, int) {
			return func(done, all int) { told[unit] = append(told[unit], done, all) }
		}}
		if _, err := c.read([]byte(c.text), o); err != nil {
			t.Fatal(err)
		}
		if l, z := told["lines"], told["zones"]; len(l) < 2*c.lines || l[2] != 1 || l[3] != c.lines || len(z) != 2*c.zones || z[2] != 1 || z[3] != c.zones {
			t.Errorf("%v", told)
		}
	}
}

func TestAnInterfaceIsMappedByItsName(t *testing.T) {
	p, err := MDS([]byte("zone name z vsan 1\n member interface fc1/7 swwn 20:00:00:0d:ec:3b:2a:c0\n"), Options{Map: testMap(t)})
	if err != nil || !slices.Equal(p.Zones["z"].Texts(), []string{"port:192.0.2.251/Ethernet7"}) {
		t.Errorf("%v", err)
	}
}

func FuzzBrocade(f *testing.F) { fuzz(f, Brocade, cfgshow, zonecreate) }
func FuzzMDS(f *testing.F)     { fuzz(f, MDS, running) }

func fuzz(f *testing.F, read func([]byte, Options) (*change.Plan, error), seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	o := Options{Map: testMap(f)}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := read(text, o)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if p != nil && p.Check(zone.Rules{}) != nil {
			t.Fatal(p.Check(zone.Rules{}))
		}
	})
}

func FuzzMap(f *testing.F) {
	f.Add([]byte(theMap))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := ParseMap(text, zone.Rules{}); err == nil {
			for name, list := range m.members {
				if name == "" || len(list) == 0 {
					t.Fatalf("%q: %v", name, list)
				}
			}
		}
	})
}
