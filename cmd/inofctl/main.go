package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/manual"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// How long is waited for the daemon.
const (
	requestTimeout    = 30 * time.Second // for the answer to a request
	completionTimeout = 2 * time.Second  // while a shell waits for what may stand there
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{out: stdout, err: stderr, now: time.Now, patience: requestTimeout}
	return a.execute(ctx, args)
}

// app is what all commands share.
type app struct {
	out, err io.Writer
	now      func() time.Time
	patience time.Duration // see requestTimeout
	socket   string
	format   string // "table" or "json"
}

func (a *app) execute(ctx context.Context, args []string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &output{Writer: a.out, failed: cancel}
	a.out = out
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(ctx)
	if out.err != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = fmt.Errorf("output: %w", out.err)
	}
	if err == nil {
		return 0
	}
	if errors.As(err, new(finding)) {
		return exitFinding
	}
	fmt.Fprintf(a.err, "inofctl: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(a.err, "see: %s --help\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// output keeps the first error of what is printed, and ends the command: an answer that nobody got
// is not a success.
type output struct {
	io.Writer
	failed func()

	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = err
		o.failed()
	}
	return n, err
}

func (a *app) root() *cobra.Command {
	root := group("inofctl", "See and change what an iNOF device does",
		a.showCmd(), a.whyCmd(), a.auditCmd(), a.configCmd(), a.doctorCmd(), a.topCmd(), a.dashboardCmd(), a.supportCmd(), a.backupCmd(), a.restoreCmd(), a.watchCmd(), a.zoneCmd(), a.clusterCmd(), a.portCmd(), a.drainCmd(), a.haltCmd(), a.resumeCmd(), a.testNoticeCmd(), a.hostCmd(), a.hardZoningCmd(), a.reloadCmd(), a.checkCmd(), a.passwordKeyCmd(), a.containerCmd(), a.versionCmd(), a.benchCmd(), newLabCmd(), newDemoCmd(), newFabricCmd(), manual.Command("1", api.Version))
	root.Version = api.VersionText()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f := root.PersistentFlags()
	f.StringVar(&a.socket, "socket", socketDefault(), "unix socket of the daemon")
	a.format = "table"
	f.VarP(&oneOf{value: &a.format, options: []string{"table", "json"}}, "output", "o", "form of what is printed")
	a.format = "table"
	must(root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	return root
}

// socketDefault lets INOF_MANAGEMENT_SOCKET move the daemon and its tool together.
func socketDefault() string {
	if s := os.Getenv("INOF_MANAGEMENT_SOCKET"); s != "" {
		return s
	}
	return config.DefaultSocket
}

// must is for mistakes that only a change of this program can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// usageError is a wrong call, as opposed to a failure.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// group is a command that only holds others and names them when called wrongly.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	c.AddCommand(subs...)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		names := []string{}
		for _, s := range cmd.Commands() {
			if s.IsAvailableCommand() {
				names = append(names, s.Name())
			}
		}
		list := strings.Join(names, ", ")
		if len(args) == 0 {
			return usagef("%s what? One of: %s", cmd.CommandPath(), list)
		}
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usagef("unknown command %q, did you mean %s?", args[0], strings.Join(near, " or "))
		}
		return usagef("unknown command %q, one of: %s", args[0], list)
	}
	c.SuggestionsMinimumDistance = 2
	return c
}

// arguments checks the number of arguments; most < 0 means any.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("too few arguments: %s", cmd.UseLine())
		case most >= 0 && len(args) > most:
			return usagef("too many arguments from %q on: %s", args[most], cmd.UseLine())
		}
		return nil
	}
}

// oneOf is a flag that takes one of some words.
type oneOf struct {
	value   *string
	options []string
}

func (o *oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

func (o *oneOf) Type() string { return strings.Join(o.options, "|") }

// Set implements pflag.Value.
func (o *oneOf) Set(s string) error {
	if !slices.Contains(o.options, s) {
		return fmt.Errorf("one of %s", strings.Join(o.options, ", "))
	}
	*o.value = s
	return nil
}

// call runs do with a client of the daemon, within the time for a request.
func (a *app) call(cmd *cobra.Command, do func(context.Context, *api.Client) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), a.patience)
	defer cancel()
	c := api.NewClient(a.socket)
	defer c.Close()
	return a.unanswered(do(ctx, c), a.patience)
}

// unanswered says of a request that took too long that it is the daemon that does not answer.
func (a *app) unanswered(err error, waited time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("inofd at %s did not answer within %v", a.socket, waited)
	}
	return err
}

// print writes v as JSON, or what table writes of it.
func (a *app) print(v any, table func(w io.Writer)) error {
	if a.format != "json" {
		table(a.out)
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of inofctl", Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := api.VersionText()
			return a.print(map[string]string{"version": v}, func(w io.Writer) { fmt.Fprintln(w, "inofctl", v) })
		},
	}
}
