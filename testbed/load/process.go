package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Process is how the benchmark's other processes are started: the command line of a program that
// calls Main with the role and the directory that are appended to it.
type Process struct {
	Command []string
	Env     []string // added to the environment
}

// child is a process that answers requests, a line each.
type child struct {
	role string
	cmd  *exec.Cmd // nil: it does not run
	in   io.WriteCloser
	out  *bufio.Reader
}

// start starts the process.
func (c *child) start(proc Process, role, dir string) error {
	cmd := exec.Command(proc.Command[0], append(proc.Command[1:len(proc.Command):len(proc.Command)], role, dir)...)
	cmd.Env = append(os.Environ(), proc.Env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the %s's process: %w", role, err)
	}
	c.role, c.cmd, c.in, c.out = role, cmd, in, bufio.NewReader(out)
	return nil
}

// ask sends a request and waits for the reply.
func (c *child) ask(ctx context.Context, q request) (reply, error) {
	b, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	if _, err := c.in.Write(append(b, '\n')); err != nil {
		return reply{}, fmt.Errorf("the %s's process: %w", c.role, err)
	}
	return c.read(ctx)
}

func (c *child) read(ctx context.Context) (r reply, err error) {
	cmd := c.cmd
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // a read of a pipe knows no context
	defer stop()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return r, errors.Join(ctx.Err(), fmt.Errorf("the %s's process has ended: %w", c.role, err))
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("the %s's process: %w", c.role, err)
	}
	if r.Err != "" {
		return r, fmt.Errorf("the %s's process: %s", c.role, strings.TrimSpace(r.Err))
	}
	return r, nil
}

// kill ends the process without a word.
func (c *child) kill() {
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// answers gives each request that comes to answer, and its reply back, until the input ends.
func answers(in io.Reader, out io.Writer, answer func(q request) (reply, error)) error {
	enc := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var q request
		err := json.Unmarshal(lines.Bytes(), &q)
		var r reply
		if err == nil {
			r, err = answer(q)
		}
		if err != nil {
			r.Err = err.Error()
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}
