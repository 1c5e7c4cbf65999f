// Package agentlog reads what the host agents of a lab print (snsd --output json) while
// they print it.
package agentlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"
)

// Line is a line of a host agent's output, as far as the tests need it.
type Line struct {
	Time      time.Time    `json:"time"` // of a notice: the kernel's receive time stamp of the frame
	Event     string       `json:"event"`
	Subject   netip.Addr   `json:"subject"`
	Host      netip.Addr   `json:"host"`
	State     string       `json:"state"`
	Reason    string       `json:"reason"`
	Seq       uint32       `json:"seq"`
	Link      string       `json:"link"`
	Addresses []netip.Addr `json:"addresses"`
	Error     string       `json:"error"`

	Raw string `json:"-"` // the line as it was printed
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 10

// Follower reads what is appended to the output files of agents.
type Follower struct{ files []*file }

type file struct {
	agent string
	path  string
	open  *os.File
	rest  []byte // an unfinished line
}

// Add has the file that an agent writes followed, from its beginning. It is opened when
// it is read for the first time.
func (f *Follower) Add(agent, path string) {
	f.files = append(f.files, &file{agent: agent, path: path})
}

// Len is the number of files.
func (f *Follower) Len() int { return len(f.files) }

// Read hands over what was printed since the last call. An error names the agent: its
// file cannot be read, or has a line that is no JSON or of more than 64 KiB.
func (f *Follower) Read(each func(agent string, l Line)) error {
	for _, a := range f.files {
		if err := a.read(each); err != nil {
			return fmt.Errorf("output of %s: %w", a.agent, err)
		}
	}
	return nil
}

// Close closes the files.
func (f *Follower) Close() {
	for _, a := range f.files {
		if a.open != nil {
			a.open.Close()
		}
	}
}

func (a *file) read(each func(string, Line)) error {
	if a.open == nil {
		f, err := os.Open(a.path)
		if err != nil {
			return err
		}
		a.open = f
	}
	b, err := io.ReadAll(a.open)
	if err != nil {
		return err
	}
	a.rest = append(a.rest, b...)
	for {
		i := bytes.IndexByte(a.rest, '\n')
		if i < 0 {
			break
		}
		text := bytes.TrimSpace(a.rest[:i])
		a.rest = a.rest[i+1:]
		if len(text) == 0 {
			continue
		}
		l := Line{Raw: string(text)}
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		each(a.agent, l)
	}
	if len(a.rest) > maxLine {
		return fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	return nil
}
