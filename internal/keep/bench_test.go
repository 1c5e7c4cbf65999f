package keep

import (
	"fmt"
	"os"
	"testing"
)

// benchKeeper is a Keeper with the database on a disk and the unsaved files in memory.
func benchKeeper(b *testing.B) *Keeper {
	b.Helper()
	mem, err := os.MkdirTemp("/dev/shm", "inof-keep-bench-*")
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { os.RemoveAll(mem) })
	k, _, err := Open(Config{Dir: b.TempDir(), Unsaved: mem + "/unsaved", Device: "10.0.0.1", Boot: "b"})
	if err == nil {
		err = k.Begin()
	}
	if err != nil {
		b.Fatal(err)
	}
	return k
}

// What the owner pays before a frame of 20 notices leaves.
func BenchmarkPutAndFlush(b *testing.B) {
	k := benchKeeper(b)
	key, value := []byte("\x04\x0a\x00\x00\x01\x04\x0a\x00\x00\x02"), make([]byte, 7)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range 20 {
			key[4], key[9] = byte(i), byte(j)
			k.Put("told", key, value)
		}
		k.Flush()
		if i%1000 == 999 {
			b.StopTimer()
			if err := k.save(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
}

// One change of a fabric of 80,000 hosts, to the disk; and reading it all back.
func BenchmarkAt80000Hosts(b *testing.B) {
	k := benchKeeper(b)
	pdu := make([]byte, 330) // an LLDPDU of an agent with its times
	for i := range 80000 {
		a := fmt.Appendf(nil, "\x04%04d", i)
		k.Put("neighbour", fmt.Appendf(nil, "Ethernet%d\x00chassis and port %06d", i%128, i), pdu)
		k.Put("host", a, make([]byte, 7))
		k.Put("told", append(a, "\x04peer"...), make([]byte, 7))
		k.Put("subject", a, make([]byte, 72))
	}
	if err := k.save(); err != nil {
		b.Fatal(err)
	}
	b.Run("change", func(b *testing.B) {
		before := k.Counters()
		for i := 0; b.Loop(); i++ {
			k.Put("told", fmt.Appendf(nil, "\x04%04d\x04peer", i*7919%80000), []byte("changed"))
			if err := k.save(); err != nil {
				b.Fatal(err)
			}
		}
		after := k.Counters()
		b.ReportMetric(float64(after.Bytes-before.Bytes)/float64(after.Commits-before.Commits), "disk-B/op")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if f, err := Look(k.cfg); err != nil || len(f.Rows) != 320000 {
				b.Fatal(err, len(f.Rows), f.Problems)
			}
		}
	})
}
