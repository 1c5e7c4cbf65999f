package fencing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/snsd"
)

// scriptedArray answers the commands of two controllers, byte by byte, by the figures of NVMe Base
// 2.3. Its reset takes a while.
type scriptedArray struct {
	mu        sync.Mutex
	limit     uint8
	takes     time.Duration // of a reset; 0: done before its completion
	fails     bool
	refuse    []hostkernel.StatusError // of the next resets
	ends      time.Time                // of the reset that runs
	target    uint32                   // CDW10 of that
	commands  []string
	cntlid    map[string]int
	state     map[string]hostkernel.State
	instances map[string]uint64 // CIRN
	removed   bool
	silent    map[string]time.Duration // controllers that answer after a time only
}

func newScriptedArray() *scriptedArray {
	return &scriptedArray{limit: 1, cntlid: map[string]int{"nvme0": 7, "nvme1": 0x1234}, instances: map[string]uint64{"nvme0": 0x1122334455667788, "nvme1": 0x99aabbccddeeff00},
		state: map[string]hostkernel.State{"nvme0": hostkernel.Live, "nvme1": hostkernel.Live}}
}

func (s *scriptedArray) controller(n int) hostkernel.Controller {
	c := controller(host1, array1)
	if n == 1 {
		c = controller(host2, array2)
	}
	c.Instance, c.State = n, s.state["nvme"+strconv.Itoa(n)]
	return c
}

func (s *scriptedArray) Controllers() ([]hostkernel.Controller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []hostkernel.Controller{s.controller(0), s.controller(1)}, nil
}

func (s *scriptedArray) Attribute(c *hostkernel.Controller, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.cntlid[c.Name()]), nil
}

func (s *scriptedArray) Admin(c *hostkernel.Controller, cmd hostkernel.AdminCommand) (uint32, error) {
	s.mu.Lock()
	silent := s.silent[c.Name()]
	s.mu.Unlock()
	if silent > cmd.Within {
		panic("the kernel leaves " + c.Name())
	}
	time.Sleep(silent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, fmt.Sprintf("%s %02x %x %x %x", c.Name(), cmd.Opcode, cmd.CDW10, cmd.CDW12, cmd.CDW13))
	switch cmd.Opcode {
	case 0x06:
		if cmd.CDW10 != 1 || len(cmd.Data) != 4096 {
			return 0, hostkernel.StatusError(0x4002)
		}
		binary.LittleEndian.PutUint16(cmd.Data[78:], uint16(s.cntlid[c.Name()]))
		cmd.Data[135] = 3
		binary.LittleEndian.PutUint64(cmd.Data[136:], s.instances[c.Name()])
		cmd.Data[1807] = s.limit
		return 0, nil
	case 0x38:
		if len(s.refuse) > 0 {
			err := s.refuse[0]
			s.refuse = s.refuse[1:]
			return 0, fmt.Errorf("reset: %w", err)
		}
		if cirn := uint64(cmd.CDW13)<<32 | uint64(cmd.CDW12); cmd.CDW10 != uint32(s.cntlid["nvme0"])|3<<16 || cirn != s.instances["nvme0"] {
			return 0, hostkernel.StatusError(0x4002)
		}
		s.target, s.ends = cmd.CDW10, time.Now().Add(s.takes)
		if s.takes == 0 {
			return 1, nil
		}
		return 0, nil
	case 0x02:
		if cmd.CDW10&0xff != 0x1e || int(cmd.CDW10>>16)+1 != len(cmd.Data)/4 {
			return 0, hostkernel.StatusError(0x109)
		}
		s.removed = s.removed || cmd.CDW10&0x100 != 0
		binary.LittleEndian.PutUint16(cmd.Data, 2)
		copy(cmd.Data[8:], []byte{9, 0, 3, 0, 0x34, 0x12, 2, 3}) // of another controller
		binary.LittleEndian.PutUint32(cmd.Data[16:], s.target)
		binary.LittleEndian.PutUint16(cmd.Data[20:], 0x1234)
		switch {
		case time.Now().Before(s.ends):
			cmd.Data[22] = 0
		case s.fails:
			cmd.Data[22] = 2
		default:
			cmd.Data[22] = 1
		}
		return 0, nil
	}
	return 0, hostkernel.StatusError(0x4001)
}

func (s *scriptedArray) pair() hostagent.FencePair {
	return hostagent.FencePair{Host: host1, Array: array1, Controllers: []hostkernel.Controller{s.controller(0)}, Living: []hostkernel.Controller{s.controller(1)}}
}

// What is asked of a path that does not answer must not have the kernel leave it: it is not fenced. It is
// asked once, and what it is is known when it answers again.
func TestASilentControllerIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedArray()
		s.silent = map[string]time.Duration{"nvme1": time.Minute}
		r := NewReset(s)
		for begun := time.Now(); time.Since(begun) < 50*time.Second; time.Sleep(learnEvery) {
			r.Learn()
		}
		if got, err := r.Fence(t.Context(), s.pair(), func() {}); !errors.Is(err, ErrNoReset) {
			t.Errorf("%+v: %v", got, err)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.silent = nil
		if n := len(s.commands); n != 2 {
			t.Errorf("asked: %q", s.commands)
		}
		s.mu.Unlock()
		r.Learn()
		if got, err := r.Fence(t.Context(), s.pair(), func() {}); err != nil {
			t.Errorf("%+v: %v", got, err)
		}
	})
}

// A living controller resets the one of the lost path; level array is reached when the log says that
// the reset is done, or its completion already did.
func TestLivingControllerResetsTheLostOne(t *testing.T) {
	for _, takes := range []time.Duration{0, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := newScriptedArray()
			s.takes = takes
			r := NewReset(s)
			r.Learn()
			s.state["nvme0"] = hostkernel.Connecting
			r.Learn() // what it was is kept
			begun := time.Now()
			working := 0
			got, err := r.Fence(t.Context(), s.pair(), func() { working++ })
			if err != nil || got.Level != snsd.FenceArray || got.Way != snsd.FenceByNVMe {
				t.Fatalf("%+v: %v", got, err)
			}
			if took := time.Since(begun); took < takes || took > takes+2*logEvery {
				t.Errorf("answered after %v, the reset takes %v", took, takes)
			}
			if want := min(1, int(takes)); working != want {
				t.Errorf("it was said %d times that the array works on it, want %d", working, want)
			}
			if want := "nvme1 38 30007 55667788 11223344"; s.commands[2] != want {
				t.Errorf("%q, want %q", s.commands[2], want)
			}
		})
	}
}

// A full log is emptied, and beyond the limit of resets it is tried again; a reset that runs already
// is awaited.
func TestResetIsTriedAgain(t *testing.T) {
	for _, refused := range [][]hostkernel.StatusError{{0x140}, {0x4141, 0x141}, {0x13f}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScriptedArray()
			s.target = 7 | 3<<16 // of the one that runs already
			s.refuse = refused
			r := NewReset(s)
			r.Learn()
			if _, err := r.Fence(t.Context(), s.pair(), func() {}); err != nil {
				t.Fatal(err)
			}
			if s.removed != (refused[0] == 0x140) {
				t.Errorf("after status %#x entries removed: %t", refused[0], s.removed)
			}
		})
	}
}

// What is no fence: no controller that can, one that was never identified, one that is another
// instance by now, a reset that fails, and one that does not end in time.
func TestWhatResetCannotFence(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*scriptedArray, *Reset)
		want string
	}{
		"no limit":         {func(s *scriptedArray, r *Reset) { s.limit = 0; r.Learn() }, "CCRL is 0"},
		"not known":        {func(s *scriptedArray, r *Reset) { s.state["nvme0"] = hostkernel.Connecting; r.Learn() }, "not read while it lived"},
		"another instance": {func(s *scriptedArray, r *Reset) { r.Learn(); s.instances["nvme0"]++ }, "0x4002"},
		"it fails":         {func(s *scriptedArray, r *Reset) { r.Learn(); s.takes, s.fails = time.Millisecond, true }, "status 2"},
		"it takes long":    {func(s *scriptedArray, r *Reset) { r.Learn(); s.takes = time.Hour }, "not done yet"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScriptedArray()
				r := NewReset(s)
				c.set(s, r)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				got, err := r.Fence(ctx, s.pair(), func() {})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%+v: %v, want %q", got, err, c.want)
				}
			})
		})
	}
}

// A controller that connected anew is another instance: it is identified again.
func TestInstanceIsReadAgainAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScriptedArray()
		r := NewReset(s)
		r.Learn()
		s.state["nvme0"] = hostkernel.Connecting
		r.Learn()
		s.state["nvme0"], s.instances["nvme0"] = hostkernel.Live, 42
		r.Learn()
		if _, err := r.Fence(t.Context(), s.pair(), func() {}); err != nil {
			t.Error(err)
		}
	})
}

// A way that cannot is followed by the next; without any the error says what is missing.
func TestWaysComeAfterEachOther(t *testing.T) {
	s := newScriptedArray()
	s.limit = 0
	r := NewReset(s)
	r.Learn()
	id := identities(t)["secret"]
	a := startArray(t, id[0])
	p := loPair()
	p.Living = append(p.Living, s.controller(1))
	if got, err := (Fencers{r, a.asker(t, id[1])}).Fence(t.Context(), p, func() {}); err != nil || got.Way != snsd.FenceByTarget {
		t.Errorf("%+v: %v", got, err)
	}
	if _, err := (Fencers{r}).Fence(t.Context(), p, func() {}); !errors.Is(err, ErrNoReset) {
		t.Error(err)
	}
	for _, none := range []Fencers{{}, {r, NotAsked{}}} {
		if _, err := none.Fence(t.Context(), p, func() {}); !errors.Is(err, errNotAsked) {
			t.Error(err)
		}
		if err := none.Check(t.Context(), p); !errors.Is(err, errNotAsked) {
			t.Error(err)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 0, 8, 0, 1, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 8 {
			return
		}
		if list := parseLog(b); len(list) > (len(b)-8)/8 || len(list) > int(binary.LittleEndian.Uint16(b)) {
			t.Fatalf("%d entries of %d bytes", len(list), len(b))
		}
	})
}
