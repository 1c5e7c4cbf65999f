package wire

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/snsd"
)

func drawAddrs(t *rapid.T, name string) []netip.Addr {
	return SortedAddrs(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 12).Draw(t, "addr"))})
	}), 0, 12).Draw(t, name))
}

func drawStep(t *rapid.T) FaultRecord {
	f := FaultRecord{Op: rapid.SampledFrom([]Op{Put, Withdraw, Change}).Draw(t, "op"), Device: netip.AddrFrom4([4]byte{192, 0, 2, 1}), Port: "p"}
	if f.Op != Withdraw {
		f.Why, f.Addrs = snsd.ReasonLinkDown, drawAddrs(t, "addrs")
	}
	if f.Op == Change {
		f.Gone = Less(drawAddrs(t, "gone"), f.Addrs)
	}
	return f
}

// listOf plays records to the addresses that are down in the end.
func listOf(fs ...FaultRecord) []netip.Addr {
	down := map[netip.Addr]bool{}
	for _, f := range fs {
		if f.Op != Change {
			clear(down)
		}
		for _, a := range f.Addrs {
			down[a] = true
		}
		for _, a := range f.Gone {
			delete(down, a)
		}
	}
	var out []netip.Addr
	for a := range down {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// However records about one fault are put together, what is down in the end is the same.
func TestFaultRecordsPutTogetherSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawStep(t), drawStep(t), drawStep(t)
		want := listOf(a, b, c)
		ab, bc := a.Then(b), b.Then(c)
		for name, got := range map[string]FaultRecord{"(a b) c": ab.Then(c), "a (b c)": a.Then(bc)} {
			if !slices.Equal(listOf(a, got), want) && a.Op == Change || a.Op != Change && !slices.Equal(listOf(got), want) {
				t.Fatalf("%s: %v %v %v gives %v, want %v", name, a, b, c, got, want)
			}
		}
		if before, now := (&FaultRecord{}).Then(a), a.Then(b); before.Op == Put && now.Op == Put {
			if d, ok := Difference(&before, &now); ok && !slices.Equal(listOf(before, d), now.Addrs) || !ok && !slices.Equal(before.Addrs, now.Addrs) {
				t.Fatalf("from %v to %v: %v", before, now, d)
			}
		}
	})
}
