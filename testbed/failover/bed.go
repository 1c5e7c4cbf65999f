package failover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed"
)

// Bed is the lab that is up, with the array serving and the host connected over both planes.
type Bed struct {
	lab   *testbed.Lab
	over  Transport
	zones *api.Client // of the reflector
	asks  net.Conn    // to the program that does I/O
	say   func(format string, args ...any)

	target [2]string // process ids of the array's agents in the machine, by plane
}

// Config is what a bed needs.
type Config struct {
	Dir  string // for its files
	Root string // of labs
	Bin  string // the directory with inofd, inofctl, snsd and iotime
	Over Transport
	BFD  Detection
	Say  func(format string, args ...any)
}

// Up builds the lab and waits until both planes carry I/O.
func Up(ctx context.Context, cfg Config) (*Bed, error) {
	topo, err := write(cfg.Dir, cfg.Over, cfg.BFD)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	lab, err := testbed.Up(ctx, topo, testbed.Options{Root: cfg.Root, BinDir: cfg.Bin})
	if err != nil {
		return nil, err
	}
	b := &Bed{lab: lab, over: cfg.Over, zones: api.NewClient(lab.Socket(reflector)), say: cfg.Say}
	if err := b.begin(ctx); err != nil {
		b.Down()
		return nil, err
	}
	b.say("up after %.1f s", time.Since(began).Seconds())
	return b, nil
}

func (b *Bed) begin(ctx context.Context) error {
	if out, err := b.do(ctx, common+setupHost(b.over)); err != nil {
		return fmt.Errorf("host: %s: %w", out, err)
	}
	cards := setupCards(b.over)
	if b.over == RDMA {
		cards = common + cards
	}
	if err := b.atArray(ctx, cards); err != nil {
		return err
	}
	files := map[string]string{b.share("host.yaml"): hostConfig, b.share("host-off.yaml"): hostConfig + fenceOff, b.share("snsd.conf"): existingConfig(b.over)}
	for p := range tors {
		node, _, _ := b.over.at(p)
		files[b.shareOf(node, fmt.Sprintf("array%d.yaml", p+1))] = arrayConfig(b.over, p)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := b.dialIn(1); err != nil {
		return err
	}
	for p := range tors {
		if err := b.startTarget(ctx, p); err != nil {
			return err
		}
	}
	// An agent that begins to watch connections when there are some already fences nothing for half a minute.
	if err := b.await(ctx, "the watch of the array's agents", func() error { return b.atArray(ctx, "ls /sys/fs/bpf/snsd-target*/link*") }); err != nil {
		return err
	}
	return b.atArray(ctx, setupArray(b.over))
}

// atArray runs a shell script in the array's machine; what it wrote is part of its error.
func (b *Bed) atArray(ctx context.Context, script string) error {
	if out, err := b.doAtArray(ctx, script); err != nil {
		return fmt.Errorf("array: %s: %w", out, err)
	}
	return nil
}

// startTarget starts the array's agent on a plane.
func (b *Bed) startTarget(ctx context.Context, plane int) (err error) {
	node, _, inside := b.over.at(plane)
	b.target[plane], err = b.startOn(ctx, node, fmt.Sprintf("array%d.out", plane+1), fmt.Sprintf("%s/run/bin/snsd run -c /lab/node/array%d.yaml --existing ''", inside, plane+1))
	return err
}

// Down ends the lab.
func (b *Bed) Down() error {
	if b.asks != nil {
		b.asks.Close()
	}
	b.zones.Close()
	return b.lab.Down()
}

// patience bounds every wait.
const patience = 90 * time.Second

// await waits until cond gives nil.
func (b *Bed) await(ctx context.Context, what string, cond func() error) error {
	end := time.Now().Add(patience)
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %s: %w", patience, what, err)
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// told is a line of an agent, see cmd/snsd.
type told struct {
	NS        int64             `json:"ns"`
	Event     string            `json:"event"`
	Subject   netip.Addr        `json:"subject"`
	Host      netip.Addr        `json:"host"`
	State     string            `json:"state"`
	Reason    string            `json:"reason"`
	Link      string            `json:"link"`
	Action    *hostagent.Action `json:"action"`
	Error     string            `json:"error"`
	Interface string            `json:"interface"`
}

// lines reads what agents wrote into files of the share.
func (b *Bed) lines(files []string) ([]told, error) {
	var all []told
	for _, name := range files {
		text, err := os.ReadFile(b.share(name))
		if err != nil {
			return nil, err
		}
		in := bufio.NewScanner(bytes.NewReader(text))
		for in.Scan() {
			var l told
			if json.Unmarshal(in.Bytes(), &l) == nil {
				all = append(all, l)
			} else {
				b.say("%s: %s", name, in.Text())
			}
		}
	}
	return all, nil
}
