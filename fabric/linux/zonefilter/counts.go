package zonefilter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/hardzone"
)

// Counts implements hardzone.Dataplane.
func (f *Filter) Counts() (hardzone.Counts, error) {
	out := hardzone.Counts{Ports: make(map[string]hardzone.PortCounts)}
	for n, name := range f.names {
		if f.ports[name] == nil {
			continue
		}
		var cpus []countsValue
		if err := f.tables[tablePortCounts].Lookup(uint32(n), &cpus); err != nil {
			return out, err
		}
		var sum countsValue
		for _, c := range cpus {
			for i := range c {
				sum[i] += c[i]
			}
		}
		out.Ports[name] = hardzone.PortCounts{Passed: sum[0], Permitted: sum[1], Other: sum[2], NoPair: sum[3], BadSource: sum[4], Unlearned: sum[5], Malformed: sum[6]}
	}
	for zone := range f.rows.lastZone() + 1 {
		var cpus []zoneCountsValue
		if err := f.tables[tableZoneCounts].Lookup(zone, &cpus); err != nil {
			return out, err
		}
		var sum hardzone.ZoneCounts
		for _, c := range cpus {
			sum.Passed += c.Passed
			sum.Denied += c.Denied
		}
		out.Zones = append(out.Zones, sum)
	}
	return out, nil
}

// Samples implements hardzone.Dataplane.
func (f *Filter) Samples(ctx context.Context, take func(hardzone.Sample)) error {
	r, err := ringbuf.NewReader(f.tables[tableSamples])
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { r.Close() })()
	var rec ringbuf.Record
	for {
		if err := r.ReadInto(&rec); err != nil {
			if errors.Is(err, os.ErrClosed) && ctx.Err() != nil {
				return nil
			}
			return err
		}
		var v sampleValue
		if binary.Read(bytes.NewReader(rec.RawSample), binary.NativeEndian, &v) != nil {
			continue
		}
		s := hardzone.Sample{At: sinceBoot(v.At), Why: whyOf(v.Verdict), Src: addrOf(v.Src), Dst: addrOf(v.Dst), Protocol: v.Protocol,
			SrcPort: v.SrcPort, DstPort: v.DstPort, Discovery: v.Discovery != 0}
		var p portValue
		if f.tables[tablePorts].Lookup(v.Port, &p) == nil {
			s.Port = p.name()
		}
		take(s)
	}
}

// sinceBoot turns the kernel's monotonic time into that of a clock.
func sinceBoot(ns uint64) time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(int64(ns) - ts.Nano()))
}
