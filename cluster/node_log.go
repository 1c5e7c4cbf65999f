package cluster

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logger hands what the library logs to slog, for debugging: it repeats itself for as
// long as a peer is away. What operators need to know Node tells them, once.
type logger struct {
	hclog.Logger
	to   *slog.Logger
	args []any
}

func newLogger(to *slog.Logger) hclog.Logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	return &logger{Logger: hclog.NewNullLogger(), to: to}
}

func (l *logger) log(level slog.Level, msg string, args []any) {
	if l.to.Enabled(context.Background(), level) {
		l.to.Log(context.Background(), level, "cluster: "+msg, append(append([]any(nil), l.args...), args...)...)
	}
}

// Log implements hclog.Logger.
func (l *logger) Log(level hclog.Level, msg string, args ...any) {
	switch {
	case level >= hclog.Error:
		l.Error(msg, args...)
	case level >= hclog.Info:
		l.Info(msg, args...)
	default:
		l.Debug(msg, args...)
	}
}

// Trace implements hclog.Logger.
func (l *logger) Trace(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

// Debug implements hclog.Logger.
func (l *logger) Debug(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

// Info implements hclog.Logger.
func (l *logger) Info(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

// Warn implements hclog.Logger.
func (l *logger) Warn(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

// Error implements hclog.Logger.
func (l *logger) Error(msg string, args ...any) { l.log(slog.LevelDebug, msg, args) }

// With implements hclog.Logger.
func (l *logger) With(args ...any) hclog.Logger {
	return &logger{Logger: l.Logger, to: l.to, args: append(append([]any(nil), l.args...), args...)}
}

// Named implements hclog.Logger.
func (l *logger) Named(string) hclog.Logger { return l }

// ResetNamed implements hclog.Logger.
func (l *logger) ResetNamed(string) hclog.Logger { return l }

// StandardLogger implements hclog.Logger.
func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

// StandardWriter implements hclog.Logger.
func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
