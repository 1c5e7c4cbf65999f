package vm

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// Limits of what is run in a machine.
const (
	maxScript = 1 << 20  // bytes of a script
	maxOutput = 64 << 20 // bytes of what it says
)

// Result is what became of a script that ran in a machine.
type Result struct {
	Status int    `json:"status"` // exit status
	Output []byte `json:"output"` // standard output and error
	Error  string `json:"error,omitempty"`
}

type request struct {
	Script string `json:"script"`
}

// Do runs a shell script in the machine whose process listens at socket, and waits for
// its end. Scripts run one at a time.
func Do(ctx context.Context, socket, script string) (Result, error) {
	var r Result
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return r, fmt.Errorf("the machine does not run: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(request{Script: script}); err != nil {
		return r, err
	}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the machine ended meanwhile")
		}
		return r, errors.Join(ctx.Err(), err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// Quote writes a command line for the machine's shell.
func Quote(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}

// listen makes the socket of Do.
func listen(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", socket)
}

// serve waits for the machine's first process, tells that it is ready, and hands scripts
// to it, until something ends.
func serve(guest net.Conn, l net.Listener, ready func()) error {
	in := bufio.NewReader(guest)
	if s, err := in.ReadString('\n'); err != nil || s != "ready\n" {
		return fmt.Errorf("the machine says %q: %w", s, cause(err))
	}
	if ready != nil {
		ready()
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		err = answer(guest, in, conn)
		conn.Close()
		if err != nil {
			return err
		}
	}
}

func cause(err error) error {
	if err == nil {
		return errors.New("want ready")
	}
	return err
}

// answer serves one request. Only the machine's own failure is an error.
func answer(guest io.Writer, in *bufio.Reader, conn net.Conn) error {
	var q request
	if json.NewDecoder(io.LimitReader(conn, 2*maxScript)).Decode(&q) != nil {
		return nil
	}
	if len(q.Script) > maxScript {
		_ = json.NewEncoder(conn).Encode(Result{Error: fmt.Sprintf("a script of %d bytes, at most %d", len(q.Script), maxScript)})
		return nil
	}
	if _, err := io.WriteString(guest, base64.StdEncoding.EncodeToString([]byte(q.Script+"\n"))+"\n"); err != nil {
		return err
	}
	head, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	var r Result
	var size int
	if _, err := fmt.Sscanf(head, "%d %d\n", &r.Status, &size); err != nil || size < 0 || size > maxOutput {
		return fmt.Errorf("the machine answers %q, want a status and a size of at most %d", head, maxOutput)
	}
	r.Output = make([]byte, size)
	if _, err := io.ReadFull(in, r.Output); err != nil {
		return err
	}
	_ = json.NewEncoder(conn).Encode(r) // nobody may wait any more
	return nil
}
