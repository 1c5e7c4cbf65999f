package api

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// Caller is who is at the other end: of the management socket as the kernel says
// (SO_PEERCRED, unix(7)), so that nobody can pretend to be another; over a network by what was
// shown.
type Caller struct {
	UID, PID int
	Name     string // of the user; the number where it has none; over a network, of the user or the token
	From     string // address of one who comes over a network; empty: by the socket
	Proof    string // what one over a network has shown: token, password, certificate, SSH key
}

// String names the caller for the log.
func (c Caller) String() string {
	if c.From != "" {
		return fmt.Sprintf("%s (%s, from %s)", c.Name, c.Proof, c.From)
	}
	return fmt.Sprintf("%s (uid %d, process %d)", c.Name, c.UID, c.PID)
}

type callerKey struct{}

// withCaller notes who made a connection.
func withCaller(ctx context.Context, conn net.Conn) context.Context {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || credErr != nil {
		return ctx
	}
	c := Caller{UID: int(cred.Uid), PID: int(cred.Pid), Name: strconv.Itoa(int(cred.Uid))}
	if found, err := user.LookupId(c.Name); err == nil {
		c.Name = found.Username
	}
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns who asks for what is done in a context; false when that is not known.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// By names who asks for what is done in a context, for the log.
func By(ctx context.Context) string {
	if c, ok := CallerOf(ctx); ok {
		return c.String()
	}
	return "an operator"
}
