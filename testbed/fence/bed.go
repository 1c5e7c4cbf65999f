package fence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/openinof/inof/testbed/fence/round"
	"github.com/openinof/inof/testbed/vm"
)

// Bed is the machine that plays rounds.
type Bed struct {
	socket string
	stop   context.CancelFunc
	over   chan error
}

// Up boots a machine and sets it up. The directory bin holds the program guest, and
// the daemons that it starts.
func Up(ctx context.Context, dir, bin string) (*Bed, error) {
	image, err := vm.Image()
	if err != nil {
		return nil, err
	}
	console, err := os.Create(filepath.Join(dir, "console"))
	if err != nil {
		return nil, err
	}
	defer console.Close()
	run, stop := context.WithCancel(context.Background())
	b := &Bed{socket: filepath.Join(dir, "shell.sock"), stop: stop, over: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		b.over <- vm.Run(run, vm.Config{Name: "fence", Dir: dir, Bin: bin, Image: image, Socket: b.socket, Console: console, Memory: 1024, CPUs: 1, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-b.over:
		stop()
		return nil, err
	case <-ctx.Done():
		b.Down()
		return nil, fmt.Errorf("the machine does not boot: %w", ctx.Err())
	}
	// In memory: fetched page by page from outside, a program would stand still at every new step.
	if _, err := b.do(ctx, "mkdir /run/bin && cp /lab/bin/guest /run/bin/ && /run/bin/guest setup"); err != nil {
		b.Down()
		return nil, err
	}
	return b, nil
}

// Down ends the machine, as if its power failed.
func (b *Bed) Down() {
	b.stop()
	<-b.over
}

func (b *Bed) do(ctx context.Context, script string) ([]byte, error) {
	r, err := vm.Do(ctx, b.socket, script)
	if err != nil {
		return nil, err
	}
	if r.Status != 0 {
		return nil, fmt.Errorf("exit status %d: %s", r.Status, bytes.TrimSpace(r.Output))
	}
	return r.Output, nil
}

// Play plays a round.
func (b *Bed) Play(ctx context.Context, s round.Spec) (r round.Result, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	out, err := b.do(ctx, "/run/bin/guest round "+vm.Quote([]string{string(text)}))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("the machine says %q: %w", out, err)
	}
	return r, nil
}
