package hostkernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Writer writes files of the kernel by a child process that waits for them: a write that blocks
// cannot be ended, and neither can a process with a thread in it. The child is there before it is
// needed: to start a program is slow, and while I/O stands still it may be what stands still. One
// serves many writes at once.
type Writer struct {
	self []string // the program and its arguments, which call ServeWrites

	mu      sync.Mutex
	in      io.WriteCloser // nil: no child
	next    int
	waiting map[int]awaited
}

// awaited is a write that a child was told of.
type awaited struct {
	in   io.WriteCloser // of that child
	done chan error
}

// NewWriter makes a writer by the command line of a program that calls ServeWrites. Its child
// starts with Start, or at the first write.
func NewWriter(self ...string) *Writer { return &Writer{self: self, waiting: map[int]awaited{}} }

type order struct {
	ID   int    `json:"id"`
	File string `json:"file"`
	Text string `json:"text"`
}

type outcome struct {
	ID    int    `json:"id"`
	Error string `json:"error,omitempty"`
}

// ErrWriterGone means that the child ended before it could say what became of a write.
var ErrWriterGone = errors.New("the process that writes has gone")

// Start starts the child unless there is one.
func (w *Writer) Start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start()
}

func (w *Writer) start() error {
	if w.in != nil {
		return nil
	}
	c := exec.Command(w.self[0], w.self[1:]...)
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = os.Stderr
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		return fmt.Errorf("the process that writes: %w", err)
	}
	w.in = in
	go func() {
		w.listen(out)
		w.mu.Lock()
		if w.in == in {
			w.in = nil
		}
		for id, of := range w.waiting {
			if of.in == in {
				of.done <- ErrWriterGone
				delete(w.waiting, id)
			}
		}
		w.mu.Unlock()
		in.Close()
		_ = c.Wait()
	}()
	return nil
}

// listen takes what became of writes until the child ends.
func (w *Writer) listen(out io.Reader) {
	d := json.NewDecoder(out)
	for {
		var o outcome
		if d.Decode(&o) != nil {
			return
		}
		w.mu.Lock()
		if of, ok := w.waiting[o.ID]; ok {
			delete(w.waiting, o.ID)
			if o.Error != "" {
				of.done <- errors.New(o.Error)
			} else {
				of.done <- nil
			}
		}
		w.mu.Unlock()
	}
}

// Write has a file written and waits for the end of that; ctx ends the waiting, not the write.
func (w *Writer) Write(ctx context.Context, file, text string) error {
	done := make(chan error, 1)
	if err := w.send(file, text, done); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send hands a write to the child; to a new one if it just ended.
func (w *Writer) send(file, text string, done chan error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	for again := false; ; again = true {
		if err := w.start(); err != nil {
			return err
		}
		err := json.NewEncoder(w.in).Encode(order{w.next, file, text})
		if err == nil {
			w.waiting[w.next] = awaited{w.in, done}
			return nil
		}
		if again {
			return fmt.Errorf("the process that writes: %w", err)
		}
		w.in = nil
	}
}

// ServeWrites is the child's part: it does what is read until the input ends. What still blocks
// then is left behind.
func ServeWrites(in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	enc, d := json.NewEncoder(out), json.NewDecoder(in)
	for {
		var o order
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		go func() {
			answer := outcome{ID: o.ID}
			if err := write(o.File, o.Text); err != nil {
				answer.Error = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			_ = enc.Encode(answer)
		}()
	}
}

// write writes a file that is there.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
