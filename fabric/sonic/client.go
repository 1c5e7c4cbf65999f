package sonic

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// answerLimit bounds one exchange with the server, connecting included.
	answerLimit = 500 * time.Millisecond
	// redialDelay is how long a server that failed is left alone.
	redialDelay = time.Second
)

// db is one database of a server. Exchanges are one after the other.
type db struct {
	address string // host:port, or the path of a unix socket
	number  int

	mu    sync.Mutex
	conn  net.Conn
	in    *bufio.Reader
	retry time.Time // not before
	last  error     // why
}

// do sends commands at once and gives the answer of each. After an error the
// connection is made anew by a later call. An answer that is an error is nil.
func (d *db) do(commands ...[]string) ([][]value, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		if err := d.dial(); err != nil {
			return nil, err
		}
	}
	out, err := d.exchange(commands)
	if err != nil {
		d.drop(err)
		return nil, fmt.Errorf("redis database %d at %s: %w", d.number, d.address, err)
	}
	return out, nil
}

func (d *db) exchange(commands [][]string) ([][]value, error) {
	if err := d.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	var b []byte
	for _, c := range commands {
		b = appendCommand(b, c...)
	}
	if _, err := d.conn.Write(b); err != nil {
		return nil, err
	}
	out := make([][]value, len(commands))
	for i := range commands {
		v, err := readReply(d.in)
		if err != nil && !errors.Is(err, errReply) {
			return nil, err
		}
		if err == nil {
			out[i] = v
		}
	}
	return out, nil
}

func (d *db) dial() error {
	now := time.Now()
	if now.Before(d.retry) {
		return fmt.Errorf("redis at %s: tried again in %v after: %w", d.address, d.retry.Sub(now).Round(time.Millisecond), d.last)
	}
	conn, err := dialRedis(d.address)
	if err == nil {
		d.conn, d.in = conn, bufio.NewReaderSize(conn, maxLine)
		var out [][]value
		out, err = d.exchange([][]string{{"SELECT", strconv.Itoa(d.number)}})
		if err == nil && out[0] == nil {
			err = fmt.Errorf("database %d cannot be selected", d.number)
		}
	}
	if err != nil {
		d.drop(err)
		return fmt.Errorf("redis at %s: %w", d.address, err)
	}
	return nil
}

// dialRedis connects to a server: host:port, or the path of a unix socket.
func dialRedis(address string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	return net.DialTimeout(network, address, answerLimit)
}

// drop ends the connection because of an error.
func (d *db) drop(err error) {
	if d.conn != nil {
		_ = d.conn.Close()
	}
	d.conn, d.last, d.retry = nil, err, time.Now().Add(redialDelay)
}

func (d *db) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
}
