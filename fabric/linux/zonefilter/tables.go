package zonefilter

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"

	"github.com/openinof/inof/hardzone"
)

//go:embed bpf/filter.o
var object []byte

// layout is the version of the tables; rows of another one are not understood.
const layout = 3

// The forms of rows, as filter.c has them.
type (
	addr4Key   [4]byte
	addrKey    [16]byte
	placeValue struct {
		Number, Zone uint32
		Ports        [hardzone.MaxHostPorts]uint16
	}
	blockValue struct{ Numbers [blockSize]uint32 }
	tileKey    struct{ Low, High uint32 }
	tileValue  struct {
		Zone uint32
		Bits [tileSize * tileSize / 32]uint32
	}
	pairKey   struct{ Low, High uint32 }
	permitKey struct {
		Protocol, _ uint8
		Port        [2]byte // network byte order
	}
	prefixKey struct {
		Bits uint32
		Addr addrKey
	}
	boundValue struct {
		Ports [hardzone.MaxHostPorts]uint16
	}
	settingsValue struct {
		Mode, Unlearned, Discovery, Version uint32
		SampleGap                           uint64
		Edition, _                          uint32
	}
	seatValue       [4]struct{ Pair, Said uint64 }
	countsValue     [8]uint64
	zoneCountsValue struct{ Passed, Denied uint64 }
	sampleValue     struct {
		At                  uint64
		Port, Verdict       uint32
		Src, Dst            addrKey
		SrcPort, DstPort    uint16
		Protocol, Discovery uint8
		_                   uint16
	}
	// portValue is a row of the table of ports, which the program does not read: it tells
	// the next process which number a port has.
	portValue struct {
		Index uint32
		Name  [16]byte
	}
)

// The values of settings and verdicts, as filter.c has them.
const (
	modeOff, modeOn                       = 0, 1
	unlearnedDrop, unlearnedApart, passed = 0, 1, 2
	discoveryPass, discoveryPairs         = 0, 1
	verdictNoPair, verdictSource          = 3, 4
	verdictUnlearned, verdictMalformed    = 5, 6
	maxPorts                              = 1024 // the table of ports has one more, number 0 is none
	blockSize, tileSize, mixed            = 16, 16, 1<<32 - 1
	tablePlaces4, tablePlaces6            = "places4", "places6"
	tableBlocks4, tableBlocks6            = "blocks4", "blocks6"
	tableTiles, tableZones, tablePorts    = "tiles", "zones", "ports"
	maxZoneRows                           = 1 << 16 // of zones
	tableSettings, tablePermits           = "settings", "permits"
	tablePrefixes, tableBounds            = "prefixes", "bounds"
	tablePortCounts, tableZoneCounts      = "port_counts", "zone_counts"
	tableFlows                            = "flows"
	tableSamples, programXDP, programTC   = "samples", "zone_xdp", "zone_tc"
	variablePort                          = "PORT"
	_, _, _                               = discoveryPass, unlearnedDrop, modeOff
)

// load reads the program and its tables, with room for so many pairs.
func load(maxPairs int) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the filter's object: %w", err)
	}
	spec.Maps[tableTiles].MaxEntries = uint32(maxPairs)
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("the filter remembers what passes for each processor: %w", err)
	}
	spec.Maps[tableFlows].MaxEntries *= uint32(cpus)
	spec.Maps[tablePorts] = &ebpf.MapSpec{Name: tablePorts, Type: ebpf.Array, KeySize: 4, ValueSize: 20, MaxEntries: maxPorts + 1}
	return spec, nil
}

func addrOf(k addrKey) netip.Addr { return netip.AddrFrom16(k).Unmap() }

func prefixOf(p netip.Prefix) prefixKey {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	return prefixKey{uint32(bits), p.Addr().As16()}
}

func permitOf(p hardzone.Permit) permitKey {
	return permitKey{Protocol: p.Protocol, Port: [2]byte{byte(p.Port >> 8), byte(p.Port)}}
}

func settingsOf(c hardzone.Config, on bool) settingsValue {
	v := settingsValue{Version: layout}
	if on {
		v.Mode = modeOn
	}
	switch c.Unlearned {
	case hardzone.UnlearnedApart:
		v.Unlearned = unlearnedApart
	case hardzone.UnlearnedPass:
		v.Unlearned = passed
	}
	if c.Discovery == hardzone.DiscoveryPairs {
		v.Discovery = discoveryPairs
	}
	if c.Samples > 0 {
		v.SampleGap = uint64(time.Second) / uint64(c.Samples)
	}
	return v
}

func whyOf(verdict uint32) hardzone.Why {
	switch verdict {
	case verdictNoPair:
		return hardzone.NoPair
	case verdictSource:
		return hardzone.BadSource
	case verdictUnlearned:
		return hardzone.NotLearned
	case verdictMalformed:
		return hardzone.BadFrame
	}
	return hardzone.UnknownCause
}

func (v *portValue) name() string {
	n, _, _ := bytes.Cut(v.Name[:], []byte{0})
	return string(n)
}
