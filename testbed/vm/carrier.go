package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// carry gives each card the carrier that its link has, until ctx ends.
func carry(ctx context.Context, q *qmp, ports []*port) error {
	if err := q.do("qmp_capabilities", nil); err != nil {
		return err
	}
	// Asked for all at first and after each error: a change may have been lost.
	for {
		updates, done, lost := make(chan netlink.LinkUpdate, 64), make(chan struct{}), make(chan error, 1)
		err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{ListExisting: true, ErrorCallback: func(err error) {
			select {
			case lost <- err:
			default:
			}
		}})
		if err != nil {
			return err
		}
		err = follow(ctx, q, ports, updates, lost)
		close(done)
		if err != nil {
			return err
		}
	}
}

func follow(ctx context.Context, q *qmp, ports []*port, updates <-chan netlink.LinkUpdate, lost <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lost:
			return nil
		case u, ok := <-updates:
			if !ok {
				return nil
			}
			for _, p := range ports {
				up := u.Attrs().RawFlags&unix.IFF_LOWER_UP != 0 // only ever set while it is administratively up
				if u.Attrs().Index != p.ifi.Index || p.up.Load() == up {
					continue
				}
				if err := q.do("set_link", map[string]any{"name": p.device, "up": up}); err != nil {
					return err
				}
				p.up.Store(up)
			}
		}
	}
}

// qmp is QEMU's control connection (docs/interop/qmp-spec.txt of QEMU).
type qmp struct {
	conn net.Conn
	in   *bufio.Scanner
}

func newQMP(conn net.Conn) *qmp { return &qmp{conn: conn, in: bufio.NewScanner(conn)} }

// do has a command done and waits for the answer.
func (q *qmp) do(command string, args map[string]any) error {
	m := map[string]any{"execute": command}
	if args != nil {
		m["arguments"] = args
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := q.conn.Write(append(b, '\n')); err != nil {
		return err
	}
	for q.in.Scan() { // the greeting and events come in between
		var a struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Desc string `json:"desc"`
			} `json:"error"`
		}
		if err := json.Unmarshal(q.in.Bytes(), &a); err != nil {
			return fmt.Errorf("QEMU says %q: %w", q.in.Text(), err)
		}
		switch {
		case a.Error != nil:
			return fmt.Errorf("QEMU: %s: %s", command, a.Error.Desc)
		case a.Return != nil:
			return nil
		}
	}
	if err := q.in.Err(); err != nil {
		return err
	}
	return errors.New("QEMU has gone")
}
