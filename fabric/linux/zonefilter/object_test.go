package zonefilter

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/openinof/inof/hardzone"
)

func TestTheObjectIsOfThisSource(t *testing.T) {
	sums, err := os.ReadFile("bpf/filter.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join("bpf", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s has changed since the object was made: go generate ./fabric/linux/zonefilter", name)
		}
	}
}

func TestRowsHaveTheSizesOfTheProgram(t *testing.T) {
	spec, err := load(hardzone.Default().MaxPairs)
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string][2]uintptr{
		tablePlaces4:    {unsafe.Sizeof(addr4Key{}), unsafe.Sizeof(placeValue{})},
		tablePlaces6:    {unsafe.Sizeof(addrKey{}), unsafe.Sizeof(placeValue{})},
		tableBlocks4:    {unsafe.Sizeof(addr4Key{}), unsafe.Sizeof(blockValue{})},
		tableBlocks6:    {unsafe.Sizeof(addrKey{}), unsafe.Sizeof(blockValue{})},
		tableTiles:      {unsafe.Sizeof(tileKey{}), unsafe.Sizeof(tileValue{})},
		tableZones:      {unsafe.Sizeof(pairKey{}), 4},
		tablePermits:    {unsafe.Sizeof(permitKey{}), 4},
		tablePrefixes:   {unsafe.Sizeof(prefixKey{}), 4},
		tableBounds:     {unsafe.Sizeof(prefixKey{}), unsafe.Sizeof(boundValue{})},
		tableFlows:      {4, unsafe.Sizeof(seatValue{})},
		tableSettings:   {4, unsafe.Sizeof(settingsValue{})},
		tablePortCounts: {4, unsafe.Sizeof(countsValue{})},
		tableZoneCounts: {4, unsafe.Sizeof(zoneCountsValue{})},
		tablePorts:      {4, unsafe.Sizeof(portValue{})},
	} {
		m := spec.Maps[name]
		if uintptr(m.KeySize) != size[0] || uintptr(m.ValueSize) != size[1] {
			t.Errorf("table %s has rows of %d and %d bytes, here they are %v", name, m.KeySize, m.ValueSize, size)
		}
	}
	if n := spec.Maps[tableZoneCounts].MaxEntries; n != hardzone.ZoneCounters+1 {
		t.Errorf("%d counters of zones", n)
	}
	if n := spec.Maps[tableZones].MaxEntries; n != maxZoneRows {
		t.Errorf("%d rows of zones", n)
	}
	if n := spec.Maps[tablePortCounts].MaxEntries; n != maxPorts+1 {
		t.Errorf("%d counters of ports", n)
	}
}
