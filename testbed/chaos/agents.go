package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"
)

// Line is a line of a host agent's output, as far as it is needed.
type Line struct {
	Time      time.Time    `json:"time"`
	Event     string       `json:"event"`
	Subject   netip.Addr   `json:"subject"`
	Host      netip.Addr   `json:"host"`
	State     string       `json:"state"`
	Reason    string       `json:"reason"`
	Seq       uint32       `json:"seq"`
	Link      string       `json:"link"`
	Addresses []netip.Addr `json:"addresses"`
	Error     string       `json:"error"`

	raw string
}

// maxLine bounds a line, in bytes.
const maxLine = 64 << 10

// follower reads what is appended to the output files of the agents.
type follower struct{ files []*agentFile }

type agentFile struct {
	agent process
	path  string
	file  *os.File
	rest  []byte // an unfinished line
}

// read hands over what was printed since the last call.
func (f *follower) read(each func(process, Line)) error {
	for _, a := range f.files {
		if err := a.read(each); err != nil {
			return fmt.Errorf("output of %s/%s: %w", a.agent.node, a.agent.name, err)
		}
	}
	return nil
}

func (f *follower) close() {
	for _, a := range f.files {
		if a.file != nil {
			a.file.Close()
		}
	}
}

func (a *agentFile) read(each func(process, Line)) error {
	if a.file == nil {
		f, err := os.Open(a.path)
		if err != nil {
			return err
		}
		a.file = f
	}
	b, err := io.ReadAll(a.file)
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
		l := Line{raw: string(text)}
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
