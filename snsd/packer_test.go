package snsd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
)

// No frame may reach 1514 bytes, whatever is packed, and every notice must arrive
// once and in order, in as few frames as a greedy packer needs.
func TestPackerKeepsFramesShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := uint8(rapid.IntRange(0, 1).Draw(t, "version"))
		want := rapid.SliceOfN(rapid.Custom(drawNotice), 0, 60).Draw(t, "notices")
		var got []Notice
		last := 0
		err := PackNotices(want, version, func(b []byte) {
			p, err := ParsePacket(b)
			if err != nil || len(b)+fabric.EthernetHeaderLen >= 1514 || len(p.Notices) == 0 {
				t.Fatalf("payload of %d bytes with %d notices, %v", len(b), len(p.Notices), err)
			}
			if last > 0 && last+NoticeLen(&p.Notices[0], version) <= MaxPayload {
				t.Fatalf("a payload of %d bytes was closed too early", last)
			}
			last = len(b)
			got = append(got, p.Notices...)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || (len(got) > 0 && !cmp.Equal(got, want, cmpAddr)) {
			t.Fatalf("%d notices became %d", len(want), len(got))
		}
	})
}

func TestPackerFillsToTheLastByte(t *testing.T) {
	// Equal notices, then one whose NQN is as long as the rest of the payload.
	n := goldenNotice(Active, 0)
	size := NoticeLen(&n, Version)
	var p Packer
	p.Start(nil, Version)
	used := headerLen
	for used+2*size <= MaxPayload {
		if ok, err := p.Add(&n); !ok || err != nil {
			t.Fatal(err)
		}
		used += size
	}
	n.Service.NQN += strings.Repeat("x", MaxPayload-used-size+1)
	if ok, err := p.Add(&n); ok || err != nil {
		t.Fatalf("a payload of %d bytes was begun: %v", MaxPayload+1, err)
	}
	n.Service.NQN = n.Service.NQN[1:]
	if ok, err := p.Add(&n); !ok || err != nil {
		t.Fatalf("%d bytes were refused: %v", MaxPayload, err)
	}
	if b := p.Finish(); len(b) != MaxPayload {
		t.Errorf("%d bytes", len(b))
	}
}

func TestPackerRefusesAndGoesOn(t *testing.T) {
	var p Packer
	n := goldenNotice(Active, 0)
	if _, err := p.Add(&n); err == nil {
		t.Error("a notice was added before Start")
	}
	p.Start(nil, 7)
	if _, err := p.Add(&n); err == nil {
		t.Error("a notice of version 7 was added")
	}
	bad := n
	bad.Service.NQN = strings.Repeat("x", 256)
	calls := 0
	err := PackNotices([]Notice{n, bad, n}, Version, func(b []byte) {
		calls++
		if got, err := ParsePacket(b); err != nil || len(got.Notices) != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	if err == nil || calls != 1 {
		t.Errorf("%d payloads, %v", calls, err)
	}
	if p.Start(nil, Version); p.Finish() != nil {
		t.Error("an empty payload was given out")
	}
}

func TestPackerAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 1514)
	n := goldenNotice(Active, 0)
	var p Packer
	got := testing.AllocsPerRun(100, func() {
		p.Start(buf, Version)
		for ok := true; ok; {
			ok, _ = p.Add(&n)
		}
		p.Finish()
	})
	if got != 0 {
		t.Errorf("%v allocations for a payload", got)
	}
}
