package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// ErrNotRunning is wrapped when nobody answers on the socket.
var ErrNotRunning = errors.New("inofd is not running")

// maxLine is the longest line of an event stream in bytes.
const maxLine = 1 << 20

// Client speaks to a daemon over its unix socket. A failure the daemon reports is an *Error.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a client of the daemon at the socket; nothing is opened yet.
func NewClient(socket string) *Client {
	var d net.Dialer
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Close gives back the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends a request and gives a response with a good status.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	u := url.URL{Scheme: "http", Host: "inofd", Path: path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	e := &Error{Status: resp.StatusCode}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLine)).Decode(e); err != nil || e.Message == "" {
		return nil, fmt.Errorf("what listens on %s is not inofd: it answered %s", c.socket, resp.Status)
	}
	return nil, e
}

// explain says what to do about a failure to reach the daemon.
func (c *Client) explain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("inofd at %s did not answer: %w", c.socket, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w, or has its socket elsewhere than %s: start it (systemctl start inofd) or name its socket with --socket", ErrNotRunning, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to use %s: run as root, or join the group the socket belongs to (see management.mode): %w", c.socket, fs.ErrPermission)
	}
	return fmt.Errorf("talking to inofd at %s: %w", c.socket, err)
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (v T, err error) {
	return ask[T](ctx, c, http.MethodGet, path, q, nil)
}

// ask sends a request and reads the answer, if it has one.
func ask[T any](ctx context.Context, c *Client, method, path string, q url.Values, body any) (v T, err error) {
	resp, err := c.do(ctx, method, path, q, body)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return v, nil
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return v, fmt.Errorf("answer of inofd to %s: %w", path, err)
	}
	return v, nil
}

// Ask gives the answer to a query of package query, by the name of its path: T is what it is
// of, []Host for "hosts", or raw JSON.
func Ask[T any](ctx context.Context, c *Client, path string, filters url.Values) (T, error) {
	return get[T](ctx, c, "/v1/"+path, filters)
}

// Where is the filters of Ask: names and values in turn, empty values left out.
func Where(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		set(v, pairs[i], pairs[i+1])
	}
	return v
}

// Follow hands each new event to got until ctx ends or the daemon goes (io.EOF or
// ErrNotRunning); missed (may be nil) is told how many events were lost. With an
// After in the query it begins with the held events after that ID. A daemon that has not begun to
// answer when the patience is over is a context.DeadlineExceeded.
func (c *Client) Follow(ctx context.Context, q EventQuery, patience time.Duration, got func(Event), missed func(uint64)) error {
	v := q.values()
	v.Set("follow", "1")
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	resp, err := c.do(opening, http.MethodGet, "/v1/events", v, nil)
	if late.Stop(); err != nil {
		if ctx.Err() == nil && opening.Err() != nil {
			err = c.explain(context.Cause(opening))
		}
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line struct {
			Event
			missedLine
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("event stream of inofd: %w", err)
		}
		switch {
		case line.ID != 0:
			got(line.Event)
		case missed != nil:
			missed(line.Missed)
		}
	}
	switch err := lines.Err(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("event stream of inofd: %w", err)
	}
	return io.EOF
}
