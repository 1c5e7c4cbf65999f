package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrInUse is wrapped by Listen when another daemon answers on the socket.
var ErrInUse = errors.New("another daemon is listening there")

// Listen opens the management socket with the given permissions and group (a name or
// number; empty: that of the process). Its directory is
// made when missing; a socket that a dead daemon left behind is replaced, a living
// daemon's is not (ErrInUse), and neither is anything that is not a socket.
func Listen(path string, mode fs.FileMode, group string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("management socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("management socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("management socket: %w", err)
	}
	err = giveToGroup(path, group) // before others of that group may use it
	if err != nil {
		l.Close()
		return nil, err
	}
	if err := os.Chmod(path, mode.Perm()); err != nil {
		l.Close()
		return nil, fmt.Errorf("management socket: %w", err)
	}
	return l, nil
}

func removeStale(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something that is not a socket; remove it or name another path")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return ErrInUse
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// Serve answers on l until ctx ends. Streams then end at once; other requests
// have two seconds to finish.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           asking(h),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // of handshakes that fail anybody could make many
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return withRemote(withCaller(ctx, c), c)
		},
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err := srv.Shutdown(grace)
		if err != nil {
			err = srv.Close()
		}
		stopped <- err
	})
	err := srv.Serve(l)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
