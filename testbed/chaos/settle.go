package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/truth"
)

// settle waits until the fabric is whole and all hosts know the truth, watches that
// nothing follows, and ends the round.
func (r *runner) settle(ctx context.Context) error {
	healed := time.Now()
	limit := healed.Add(r.Settle)
	var lacks error
	for {
		if err := r.watch(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if lacks = r.lacks(ctx); lacks == nil {
			took := time.Since(healed)
			if err := r.watch(ctx, quietFor); err != nil {
				return err
			}
			if lacks = r.lacks(ctx); lacks == nil {
				r.settled = append(r.settled, took)
				break
			}
		}
		if time.Now().After(limit) {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if lacks != nil {
		r.judge.Find(truth.Finding{Kind: truth.Broken, Time: time.Now(), Text: fmt.Sprintf("not whole %s after the last fault was healed: %v", time.Since(healed).Round(time.Second), lacks)})
	}
	r.judge.Quiet(time.Now())
	t := r.judge.Tally
	fmt.Fprintf(r.Out, "round %d: %d faults; whole after %s; in all %d notices, %d answers, %d repeated frames, %d unexpected, %d missing\n",
		r.report.Rounds, len(r.report.last), (time.Since(healed) - quietFor).Round(10*time.Millisecond), t.Received, t.Answers, t.Resent, t.Unexpected, t.Missing)
	return nil
}

// watch reads what agents print for a while.
func (r *runner) watch(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		if err := r.read(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lacks tells what is not as it must be, nil if everything is.
func (r *runner) lacks(ctx context.Context) error {
	r.mu.Lock()
	absent := r.judge.Absent()
	r.mu.Unlock()
	if len(absent) > 0 {
		return fmt.Errorf("%d hosts do not know the truth, such as: %s", len(absent), absent[0].Text)
	}
	ctx, cancel := context.WithTimeout(ctx, zoneTimeout)
	defer cancel()
	for _, n := range r.fab.switches {
		if err := r.whole(ctx, n, len(r.fab.reflectors)); err != nil {
			return err
		}
	}
	for _, n := range r.fab.reflectors {
		if err := r.whole(ctx, n, len(r.fab.switches)); err != nil {
			return err
		}
		if err := r.zonesKept(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// whole asks one daemon for its sessions.
func (r *runner) whole(ctx context.Context, node string, sessions int) error {
	c := api.NewClient(r.lab.Socket(node))
	defer c.Close()
	s, err := api.Ask[api.Status](ctx, c, "status", nil)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", node, err)
	case !s.Synced || s.Counts.Established != sessions:
		return fmt.Errorf("%s: synced %v, %d of %d sessions: %s", node, s.Synced, s.Counts.Established, sessions, s.Warnings)
	}
	return nil
}

// finish completes the report, and keeps everything of a run that failed.
func (r *runner) finish(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := &r.report
	rep.Duration = time.Since(r.begun).Seconds()
	rep.Notices = r.judge.Tally
	rep.Findings = append(rep.Findings, r.judge.Findings...)
	rep.FaultToNotice, rep.Disturbed, rep.Settling = timesOf(r.clean), timesOf(r.dirty), timesOf(r.settled)
	if err == nil && !rep.Failed() {
		return
	}
	if kerr := r.keep(); kerr != nil {
		rep.Findings = append(rep.Findings, truth.Finding{Kind: truth.Broken, Time: time.Now(), Text: "the logs could not be kept: " + kerr.Error()})
	}
}

// keep copies the logs, states and outputs of all nodes, and the faults.
func (r *runner) keep() error {
	dir := r.Keep
	if dir == "" {
		d, err := os.MkdirTemp("", fmt.Sprintf("inof-chaos-%d-", r.Seed))
		if err != nil {
			return err
		}
		dir = d
	}
	r.report.Kept = dir
	var errs []error
	for _, n := range r.lab.Nodes() {
		for _, sub := range []string{"log", "state"} {
			errs = append(errs, os.CopyFS(filepath.Join(dir, n, sub), os.DirFS(filepath.Join(r.lab.NodeDir(n), sub))))
		}
	}
	b, err := json.MarshalIndent(r.report, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "report.json"), b, 0o644)
	}
	errs = append(errs, err, os.WriteFile(filepath.Join(dir, "faults.log"), []byte(strings.Join(r.done, "\n")+"\n"), 0o644))
	return errors.Join(errs...)
}
