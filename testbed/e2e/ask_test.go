package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
)

// This file asks daemons by their management API, and waits for answers.

// client gives the management API of a node.
func (f *fab) client(node string) *api.Client {
	c := api.NewClient(f.socket(node))
	f.t.Cleanup(c.Close)
	return c
}

func ask[T any](f *fab, node string, get func(context.Context, *api.Client) (T, error)) (T, error) {
	c := api.NewClient(f.socket(node))
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), labtest.Patience)
	defer cancel()
	return get(ctx, c)
}

// Questions for ask.
func neighboursOf(ctx context.Context, c *api.Client) ([]api.Neighbour, error) {
	return api.Ask[[]api.Neighbour](ctx, c, "lldp", nil)
}

func portsOf(ctx context.Context, c *api.Client) ([]api.Port, error) {
	return api.Ask[[]api.Port](ctx, c, "ports", nil)
}

func noticesAt(ctx context.Context, c *api.Client) ([]api.Notice, error) {
	return api.Ask[[]api.Notice](ctx, c, "notices", nil)
}

func errorDownOf(ctx context.Context, c *api.Client) ([]api.ErrorDown, error) {
	return api.Ask[[]api.ErrorDown](ctx, c, "error-down", nil)
}

func peersOf(ctx context.Context, c *api.Client) ([]api.Peer, error) {
	return api.Ask[[]api.Peer](ctx, c, "peers", nil)
}

func (f *fab) tryStatus(node string) (api.Status, error) {
	return ask(f, node, func(ctx context.Context, c *api.Client) (api.Status, error) {
		return api.Ask[api.Status](ctx, c, "status", nil)
	})
}

func (f *fab) status(node string) api.Status {
	f.t.Helper()
	s, err := f.tryStatus(node)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// host gives all attachments of an address as a node knows them, none if unknown.
func (f *fab) host(node, addr string) []api.Host {
	f.t.Helper()
	hs, err := ask(f, node, func(ctx context.Context, c *api.Client) ([]api.Host, error) {
		return api.Ask[[]api.Host](ctx, c, "hosts", api.Where("addr", addr))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return hs
}

func (f *fab) events(node string, after uint64) []api.Event {
	f.t.Helper()
	es, err := ask(f, node, func(ctx context.Context, c *api.Client) ([]api.Event, error) {
		return api.Ask[[]api.Event](ctx, c, "events", api.Where("after", strconv.FormatUint(max(after, 1), 10)))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return es
}

// lastEvent is the ID of a node's newest event.
func (f *fab) lastEvent(node string) uint64 {
	f.t.Helper()
	es := f.events(node, 0)
	if len(es) == 0 {
		return 0
	}
	return es[len(es)-1].ID
}

// awaitEvent waits for an event of a kind that has all of the words in its text.
func (f *fab) awaitEvent(node string, after uint64, kind string, words ...string) api.Event {
	f.t.Helper()
	var found api.Event
	labtest.Eventually(f.t, fmt.Sprintf("a %s event on %s with %q", kind, node, words), func() error {
		es := f.events(node, after)
		i := slices.IndexFunc(es, func(e api.Event) bool { return e.Kind == kind && hasAll(e.Text, words) })
		if i < 0 {
			return fmt.Errorf("events are %s", eventTexts(es, kind))
		}
		found = es[i]
		return nil
	})
	return found
}

func eventTexts(es []api.Event, kind string) string {
	var b strings.Builder
	for _, e := range es {
		if e.Kind == kind {
			fmt.Fprintf(&b, "\n  %s", e.Text)
		}
	}
	return b.String()
}

func hasAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// counter reads one counter of `show status -o json` by its path, such as "lldp.drops".
// Of a list the first element whose "port" is the path's next word counts.
func (f *fab) counter(node, path string) uint64 {
	f.t.Helper()
	var v any = f.status(node).Counters
	for word := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[word]
		case []any:
			i := slices.IndexFunc(x, func(e any) bool { m, _ := e.(map[string]any); return m["port"] == word })
			if i < 0 {
				f.t.Fatalf("counters of %s have no port %s in %s", node, word, path)
			}
			v = x[i]
		}
	}
	n, ok := v.(float64)
	if !ok {
		f.t.Fatalf("counter %s of %s is %v, not a number", path, node, v)
	}
	return uint64(n)
}

// awaitCounter waits until a counter has reached a value.
func (f *fab) awaitCounter(node, path string, least uint64) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("counter %s of %s to reach %d", path, node, least), func() error {
		if n := f.counter(node, path); n < least {
			return fmt.Errorf("it is %d", n)
		}
		return nil
	})
}

// reload sends SIGHUP to a node's daemon and waits until it has read everything.
func (f *fab) reload(node string) {
	f.t.Helper()
	before := f.counter(node, "config.reloads") + f.counter(node, "config.reload_errors")
	p, err := f.lab.Process(node, "inofd")
	if err != nil {
		f.t.Fatal(err)
	}
	hup(f.t, p.PID)
	labtest.Eventually(f.t, node+" to have read its configuration again", func() error {
		if n := f.counter(node, "config.reloads") + f.counter(node, "config.reload_errors"); n == before {
			return fmt.Errorf("%d reloads as before", n)
		}
		return nil
	})
}

// awaitHost waits until a node knows an address, and gives its first attachment.
func (f *fab) awaitHost(node, addr string) api.Host {
	f.t.Helper()
	var h api.Host
	labtest.Eventually(f.t, fmt.Sprintf("%s to know host %s", node, addr), func() error {
		hs := f.host(node, addr)
		if len(hs) == 0 {
			return errors.New("it does not")
		}
		h = hs[0]
		return nil
	})
	return h
}
