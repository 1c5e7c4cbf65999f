package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/inof/wire"
)

// Tags from midstates are those of package hmac, whichever key the tagger had before,
// and a changed message or tag is not taken.
func TestMidstateIsHMAC(t *testing.T) {
	var pool taggerPool
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(name string, least, most int) []byte {
			return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, name)
		}
		for range 3 {
			key, msg := bytesOf("key", 0, sha256.BlockSize), bytesOf("message", 0, 300)
			m, err := newMidstate(key)
			if err != nil {
				t.Fatal(err)
			}
			h := hmac.New(sha256.New, key)
			h.Write(msg)
			want := h.Sum(nil)
			tg := pool.get()
			if got := tg.tag(&m, msg); !bytes.Equal(got, want) {
				t.Fatalf("tag % x, want % x", got, want)
			}
			pool.put(tg)
			msg = append(make([]byte, wire.HeaderLen), msg...)
			want = tagByTheBook(key, msg)
			o := opener{taggers: &pool, key: m}
			if !o.verify(want, msg) {
				t.Fatal("the right tag is not taken")
			}
			bit := rapid.IntRange(0, 8*wire.TagLen-1).Draw(t, "bit")
			want[bit/8] ^= 1 << (bit % 8)
			if o.verify(want, msg) || o.verify(want[:wire.TagLen-1], msg) || o.verify(nil, msg) {
				t.Fatal("a wrong tag is taken")
			}
		}
	})
}

// tagByTheBook is the tag of a message as docs/protocol.md has it.
func tagByTheBook(key, message []byte) []byte {
	hash := sha256.Sum256(message[wire.HeaderLen:])
	h := hmac.New(sha256.New, key)
	h.Write(message[:wire.HeaderLen])
	h.Write(hash[:])
	return h.Sum(nil)
}

// A body that many sessions send is hashed once, and each tag is still that of its session, its
// number and the body, also when they send at once.
func TestSessionsThatShareABodyHaveEachItsTag(t *testing.T) {
	e := wire.Raw(wire.TypeUpdate, bytes.Repeat([]byte{7}, 1000))
	var wg sync.WaitGroup
	for k := range byte(8) {
		m, err := newMidstate([]byte{k})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			s := sealer{taggers: &ownTagger{}, key: m}
			for range 3 {
				frame := s.seal(nil, e)
				end := len(frame) - wire.TagLen
				if !bytes.Equal(frame[end:], tagByTheBook([]byte{k}, frame[:end])) {
					t.Errorf("session %d: the tag is another", k)
				}
			}
		})
	}
	wg.Wait()
}

// Sessions that share taggers at the same time have each its own tags.
func TestSharedTaggersKeepKeysApart(t *testing.T) {
	var pool taggerPool
	var wg sync.WaitGroup
	for k := range byte(4) {
		m, err := newMidstate([]byte{k})
		if err != nil {
			t.Fatal(err)
		}
		message := append(make([]byte, wire.HeaderLen), "message"...)
		want := tagByTheBook([]byte{k}, message)
		wg.Go(func() {
			o := opener{taggers: &pool, key: m}
			for range 2000 {
				if !o.verify(want, message) {
					t.Error("the tag of another session's key")
					return
				}
			}
		})
	}
	wg.Wait()
}

// A message through a tagger allocates nothing.
func TestTagsDoNotAllocate(t *testing.T) {
	m, err := newMidstate(make([]byte, sha256.Size))
	if err != nil {
		t.Fatal(err)
	}
	tx, rx := sealer{taggers: &ownTagger{}, key: m}, opener{taggers: &ownTagger{}, key: m}
	e, buf := wire.Raw(wire.TypeKeepalive, make([]byte, 100)), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		frame := tx.seal(buf, e)
		h, err := wire.ParseHeader(frame, wire.MaxMessage)
		if err == nil {
			_, err = rx.open(h, frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
