package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed"
	"github.com/openinof/inof/testbed/labtest"
)

// notice is what a host agent was told: of Subject, as the owner of Host.
type notice struct {
	Host, Subject, State, Reason string
}

// agentLine is a line of snsd --output json.
type agentLine struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Subject string    `json:"subject"`
	Host    string    `json:"host"`
	State   string    `json:"state"`
	Reason  string    `json:"reason"`
	Seq     uint32    `json:"seq"`
}

// lines reads what the only agent of a host node printed from an offset on, and
// the offset behind it.
func (f *fab) lines(node string, from int) ([]agentLine, int) {
	f.t.Helper()
	p, err := f.lab.Process(node, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return f.fileLines(p.Output, from)
}

func (f *fab) fileLines(file string, from int) ([]agentLine, int) {
	f.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	b = b[from : bytes.LastIndexByte(b, '\n')+1]
	var out []agentLine
	for line := range bytes.Lines(b) {
		var l agentLine
		if err := json.Unmarshal(line, &l); err != nil {
			f.t.Fatalf("%s: %q: %v", file, line, err)
		}
		out = append(out, l)
	}
	return out, from + len(b)
}

// mark is the present end of what a host was told.
func (f *fab) mark(node string) int {
	f.t.Helper()
	_, end := f.lines(node, 0)
	return end
}

func (f *fab) marks(nodes ...string) map[string]int {
	f.t.Helper()
	m := make(map[string]int)
	for _, n := range nodes {
		m[n] = f.mark(n)
	}
	return m
}

// notices lists what a host was told since a mark, without repetitions on the wire.
func (f *fab) notices(node string, since int) []notice {
	f.t.Helper()
	ls, _ := f.lines(node, since)
	return noticesOf(ls)
}

func noticesOf(ls []agentLine) []notice {
	var out []notice
	for _, l := range ls {
		if l.Event == "notice" {
			out = append(out, notice{l.Host, l.Subject, l.State, l.Reason})
		}
	}
	return out
}

// awaitNotice waits until a host was told something since a mark. A reason that is
// empty stands for any.
func (f *fab) awaitNotice(node string, since int, want notice) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%s to be told %v", node, want), func() error {
		got := f.notices(node, since)
		if !slices.ContainsFunc(got, func(n notice) bool { return n.is(want) }) {
			return fmt.Errorf("it was told %v", got)
		}
		return nil
	})
}

func (n notice) is(want notice) bool {
	if want.Reason == "" {
		n.Reason = ""
	}
	return n == want
}

// awaitState waits until the last thing a host was told of a subject is this.
func (f *fab) awaitState(node, host, subject, state, reason string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%s to be told that %s is %s", node, subject, state), func() error {
		got := f.notices(node, 0)
		var last notice
		for _, n := range got {
			if n.Host == host && n.Subject == subject {
				last = n
			}
		}
		if !last.is(notice{host, subject, state, reason}) {
			return fmt.Errorf("it was told %v", got)
		}
		return nil
	})
}

// quiet fails the test when a host was told anything but the given since a mark.
func (f *fab) quiet(node string, since int, but ...notice) {
	f.t.Helper()
	for _, n := range f.notices(node, since) {
		if !slices.ContainsFunc(but, func(w notice) bool { return n.is(w) }) {
			f.t.Errorf("%s was told %v, which is no news", node, n)
		}
	}
}

// kept waits until what the three daemons know is in their databases, which are
// written behind their backs: every host was told of every peer, and acked it.
func (f *fab) kept() {
	f.t.Helper()
	f.keptPairs(4, 2)
}

// keptPairs is kept for hosts that have other peers: how many there are at each switch.
func (f *fab) keptPairs(tor1, tor2 int) {
	f.t.Helper()
	f.keptBy("tor1", tor1)
	f.keptBy("tor2", tor2)
	labtest.Eventually(f.t, "the state of spine to be saved", func() error {
		st, err := f.savedState("spine")
		if err == nil && len(st.Known) != 2 {
			err = fmt.Errorf("it knows the devices %q", st.Known)
		}
		return err
	})
}

// keptBy waits until the database of a switch says that its hosts were told of so
// many active peers, and acked them: by the last notice that the hosts have, or it is what
// was kept before.
func (f *fab) keptBy(node string, pairs int) {
	f.t.Helper()
	labtest.Eventually(f.t, "the state of "+node+" to be saved", func() error {
		st, err := f.savedState(node)
		if err != nil {
			return err
		}
		last := f.lastSeqs()
		n := 0
		for _, h := range st.Told.Hosts {
			for _, told := range h.Told {
				seq, printed := last[[2]string{h.Addr.String(), told.Subject.String()}]
				if told.Acked && told.State == snsd.Active && (!printed || seq == told.Seq) {
					n++
				}
			}
		}
		if n != pairs {
			return fmt.Errorf("it holds %d pairs, want %d: %+v", n, pairs, st)
		}
		return nil
	})
}

// lastSeqs is the sequence number of the last notice that each host of the lab has of
// each subject.
func (f *fab) lastSeqs() map[[2]string]uint32 {
	f.t.Helper()
	last := make(map[[2]string]uint32)
	for _, n := range f.lab.Status().Nodes {
		for _, p := range n.Processes {
			if n.Kind != testbed.KindHost {
				continue
			}
			ls, _ := f.fileLines(p.Output, 0)
			for _, l := range ls {
				if l.Event == "notice" {
					last[[2]string{l.Host, l.Subject}] = l.Seq
				}
			}
		}
	}
	return last
}

func (f *fab) savedState(node string) (device.State, error) {
	found, err := keep.Look(keep.Config{Dir: filepath.Join(f.lab.NodeDir(node), "state")})
	if err == nil && found.None {
		err = fs.ErrNotExist
	}
	st, _ := device.StateOf(found)
	return st, err
}
