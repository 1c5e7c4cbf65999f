package cluster

import (
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger hands what the library logs to slog, for debugging: it repeats itself for as
// long as a peer is away. What operators need to know Node tells them, once.
func newLogger(to *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	if to != nil {
		l.RegisterSink(debugging{to})
	}
	return l
}

// debugging takes lines of the library, of whatever level they are there.
type debugging struct{ to *slog.Logger }

// Accept implements hclog.SinkAdapter.
func (d debugging) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	d.to.Debug("cluster: "+msg, args...)
}
