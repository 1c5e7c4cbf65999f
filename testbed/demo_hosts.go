package testbed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"
)

// heard is one notice as a host agent printed it.
type heard struct {
	notice
	At    time.Time // the kernel's receive time stamp of the frame
	Seq   uint32
	Agent string // node/process
}

// agentLine is a line of snsd --output json, as far as the demo needs it.
type agentLine struct {
	Time    time.Time  `json:"time"`
	Event   string     `json:"event"`
	Subject netip.Addr `json:"subject"`
	Host    netip.Addr `json:"host"`
	State   string     `json:"state"`
	Reason  string     `json:"reason"`
	Seq     uint32     `json:"seq"`
}

// agents follows the output files of all host agents of a lab.
type agents struct{ files []*agentFile }

type agentFile struct {
	name string
	path string
	file *os.File
	rest []byte // an unfinished line
}

// maxAgentLine bounds a line of an agent's output, in bytes.
const maxAgentLine = 64 << 10

func followAgents(l *Lab) (*agents, error) {
	a := &agents{}
	for _, n := range l.Status().Nodes {
		if n.Kind != KindHost {
			continue
		}
		for _, p := range n.Processes {
			a.files = append(a.files, &agentFile{name: n.Name + "/" + p.Name, path: p.Output})
		}
	}
	if len(a.files) == 0 {
		return nil, fmt.Errorf("lab %s has no host agents", l.Name)
	}
	return a, nil
}

func (a *agents) close() {
	for _, f := range a.files {
		if f.file != nil {
			f.file.Close()
		}
	}
}

// read gives the notices printed since the last call.
func (a *agents) read() ([]heard, error) {
	var out []heard
	for _, f := range a.files {
		lines, err := f.lines()
		if err != nil {
			return out, fmt.Errorf("output of %s: %w", f.name, err)
		}
		for _, line := range lines {
			var v agentLine
			if err := json.Unmarshal(line, &v); err != nil {
				return out, fmt.Errorf("output of %s: %q: %w", f.name, line, err)
			}
			if v.Event == "notice" {
				out = append(out, heard{notice{v.Host, v.Subject, v.State, v.Reason}, v.Time, v.Seq, f.name})
			}
		}
	}
	return out, nil
}

func (f *agentFile) lines() ([][]byte, error) {
	if f.file == nil {
		file, err := os.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	b, err := io.ReadAll(f.file)
	if err != nil {
		return nil, err
	}
	f.rest = append(f.rest, b...)
	var out [][]byte
	for {
		i := bytes.IndexByte(f.rest, '\n')
		if i < 0 {
			break
		}
		if line := bytes.TrimSpace(f.rest[:i]); len(line) > 0 {
			out = append(out, line)
		}
		f.rest = f.rest[i+1:]
	}
	if len(f.rest) > maxAgentLine {
		return out, fmt.Errorf("a line of more than %d bytes", maxAgentLine)
	}
	return out, nil
}
