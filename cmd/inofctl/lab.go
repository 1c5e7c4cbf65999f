package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/labs"
	"github.com/openinof/inof/testbed"
)

// labFlags are shared by the commands that act on a lab.
type labFlags struct {
	root, lab, bin string
}

func (f *labFlags) options() testbed.Options {
	return testbed.Options{Root: f.root, BinDir: f.bin}
}

// newLabCmd builds fabrics in network namespaces; see package testbed.
func newLabCmd() *cobra.Command {
	f := &labFlags{}
	c := group("lab", "Build a fabric of network namespaces, and break it",
		f.upCmd(), f.downCmd(), f.statusCmd(), f.execCmd(), f.faultCmd(), f.forwardCmd(), f.startCmd(), f.stopCmd(), f.benchCmd(), f.chaosCmd(), newRelayCmd(), newVMCmd(), newInVMCmd())
	c.Long = `Build a fabric of network namespaces from a containerlab topology file, and break it.

Works as root, or without privileges in a user namespace where the kernel allows
that. There a lab ends with its last process, and commands enter it by nsenter(1).`
	c.PersistentFlags().StringVar(&f.root, "root", "", "directory that holds the labs (default: $INOF_LAB_ROOT, $XDG_RUNTIME_DIR/inof-lab or /run/inof-lab)")
	c.PersistentFlags().StringVarP(&f.lab, "lab", "l", "", "name of the lab (default: the only one)")
	c.PersistentFlags().StringVar(&f.bin, "bin-dir", "", "directory of inofd and snsd (default: beside inofctl, then bin/, then PATH)")
	return c
}

// name finds the lab that is meant.
func (f *labFlags) name(arg string) (string, error) {
	if arg != "" && f.lab != "" && arg != f.lab {
		return "", usagef("two labs are named: %s and %s", f.lab, arg)
	}
	if arg == "" {
		arg = f.lab
	}
	if strings.HasSuffix(arg, ".yml") || strings.HasSuffix(arg, ".yaml") {
		t, err := testbed.Load(arg)
		if err != nil {
			return "", err
		}
		return t.Name, nil
	}
	if arg != "" {
		return arg, nil
	}
	labs, err := testbed.Labs(f.dir())
	if err != nil {
		return "", err
	}
	switch len(labs) {
	case 0:
		return "", fmt.Errorf("%w: there is none below %s", testbed.ErrNoLab, f.dir())
	case 1:
		return labs[0], nil
	}
	return "", usagef("which lab? -l with one of: %s", strings.Join(labs, ", "))
}

func (f *labFlags) dir() string {
	if f.root != "" {
		return f.root
	}
	return testbed.DefaultRoot()
}

// privileged makes sure that this program may build labs: as it is, or by running
// once more in a user namespace, in which case it does not return.
func privileged(ctx context.Context) error {
	err := testbed.Privileged()
	if err == nil || testbed.Nested() {
		return err
	}
	code, rerr := testbed.Reexec(ctx)
	if rerr != nil {
		return fmt.Errorf("%w; and %w", err, rerr)
	}
	os.Exit(code)
	return nil
}

// open gives a handle on a lab that is up, inside its user namespace if it has one.
func (f *labFlags) open(ctx context.Context) (*testbed.Lab, error) {
	name, err := f.name("")
	if err != nil {
		return nil, err
	}
	code, done, err := testbed.Enter(ctx, name, f.root)
	if done {
		os.Exit(code)
	}
	if err != nil {
		return nil, err
	}
	return testbed.Open(name, f.options())
}

const upHelp = `Build a lab from a containerlab topology file: a network namespace for each node,
a veth pair for each link, and the daemons that the kinds of the nodes ask for.

Kinds:
  linux        a namespace and nothing else; with the image inof or inof-lab what its
               container would be: a switch with the bound files, or the agent of its cmd
  inof-switch  runs inofd with the startup-config, in which ${INOF_NODE_STATE},
               ${INOF_NODE_RUN}, ${INOF_NODE_LOG}, ${INOF_NODE_DIR}, ${INOF_NODE} and
               ${INOF_LAB} are replaced; label inof.zones names a zone file
  inof-host    runs one snsd for each interface with addresses; labels inof.role,
               inof.nqn, inof.address (on inof.interface, default eth1),
               inof.address.INTERFACE, inof.ttl, inof.interval, inof.protocol,
               inof.service-port, inof.args
  vm           a kernel of its own in QEMU, with NVMe over Fabrics, that make vm
               prepares; labels inof.memory (MiB, default 512), inof.cpus. Its exec
               lines run in it, programs are at /lab/bin, and /lab/node is share/ in
               the node's directory

Exec lines run without a shell and before the node's daemons. Keys that containerlab
knows and that mean nothing without containers are noted; others are refused.`

// labFile is how the files of shipped labs end.
const labFile = ".clab.yml"

// shippedLabs are the names of the labs in this program.
func shippedLabs() (names []string) {
	files, err := fs.Glob(labs.FS, "*"+labFile)
	must(err)
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, labFile))
	}
	return names
}

// loadLab reads a topology file, or a shipped lab.
func loadLab(name string) (*testbed.Topology, error) {
	if slices.Contains(shippedLabs(), name) {
		return testbed.LoadFS(labs.FS, name+labFile)
	}
	return testbed.Load(name)
}

func (f *labFlags) upCmd() *cobra.Command {
	var replace, quiet bool
	c := &cobra.Command{Use: "up FILE|" + strings.Join(shippedLabs(), "|"), Short: "Build a lab from a topology file (*.clab.yml), or one that comes with this program", Args: arguments(1, 1),
		Long: upHelp, ValidArgs: shippedLabs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			topo, err := loadLab(args[0])
			if err != nil {
				return err
			}
			signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a reader that goes away must not keep the lab from being removed
			if err := privileged(cmd.Context()); err != nil {
				return err
			}
			opt := f.options()
			opt.Replace = replace
			if !quiet {
				opt.OnStep = func(s string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", s) }
				opt.OnOutput = func(node, text string) {
					for line := range strings.Lines(text) {
						fmt.Fprintf(cmd.ErrOrStderr(), "  %s: %s\n", node, query.Printable(strings.TrimRight(line, "\r\n")))
					}
				}
				opt.Building = progress.To(cmd.ErrOrStderr(), "steps")
				for _, i := range topo.Ignored {
					fmt.Fprintf(cmd.ErrOrStderr(), "note: %s %s\n", args[0], i)
				}
			}
			lab, err := testbed.Up(cmd.Context(), topo, opt)
			if err != nil {
				return err
			}
			defer lab.Close()
			return printStatus(cmd, lab.Status())
		}}
	c.Flags().BoolVar(&replace, "replace", false, "remove a lab of the same name that is up")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not tell what is done")
	return c
}

func (f *labFlags) downCmd() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "down [NAME|FILE]", Short: "Remove a lab: processes, namespaces, links and files", Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				if len(args) > 0 || f.lab != "" {
					return usagef("--all and the name of a lab exclude each other")
				}
				names, err := testbed.Labs(f.dir())
				if err != nil {
					return err
				}
				var errs []error
				for _, n := range names {
					errs = append(errs, f.down(cmd, n))
				}
				return errors.Join(errs...)
			}
			name, err := f.name(strings.Join(args, ""))
			if err != nil {
				return err
			}
			return f.down(cmd, name)
		}}
	c.Flags().BoolVar(&all, "all", false, "every lab")
	return c
}

// down needs no privilege for a lab in a user namespace: what it holds goes with
// its processes.
func (f *labFlags) down(cmd *cobra.Command, name string) error {
	if err := testbed.Down(name, f.options()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "lab %s is removed\n", name)
	return nil
}

func (f *labFlags) statusCmd() *cobra.Command {
	return &cobra.Command{Use: "status [NAME]", Short: "Show nodes, processes and links", Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := f.name(strings.Join(args, ""))
			if err != nil {
				return err
			}
			code, done, err := testbed.Enter(cmd.Context(), name, f.root)
			if done {
				os.Exit(code)
			}
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %v\n", err)
			}
			st, err := testbed.StatusOf(name, f.options())
			if err != nil {
				return err
			}
			return printStatus(cmd, st)
		}}
}

// asJSON tells whether -o json was given to the program.
func asJSON(cmd *cobra.Command) bool {
	o := cmd.Flag("output")
	return o != nil && o.Value.String() == "json"
}

func printStatus(cmd *cobra.Command, st testbed.Status) error {
	w := cmd.OutOrStdout()
	if asJSON(cmd) {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(st)
	}
	state := st.Phase
	if st.Phase != "up" {
		state = fmt.Sprintf("left while %s (%s); use lab down", st.Phase, st.Step)
	} else if !st.Alive {
		state = "up, but something is missing"
	}
	rows := [][2]string{{"lab", st.Name}, {"state", state}, {"directory", st.Dir}, {"file", st.File}}
	if st.Nested {
		rows = append(rows, [2]string{"privilege", "in a user namespace of its own; ends with its last process"})
	}
	(&query.Page{Writer: w}).Pairs(rows)
	nodeTable(w, st)
	if len(st.Links) > 0 {
		fmt.Fprintln(w)
		lines := [][]string{}
		for _, k := range st.Links {
			lines = append(lines, []string{k.A.Node + ":" + k.A.Port, query.UpDown(k.A.Carrier), k.B.Node + ":" + k.B.Port, query.UpDown(k.B.Carrier), strconv.Itoa(k.MTU)})
		}
		query.Table(w, "LINK CARRIER TO CARRIER MTU", lines)
	}
	return nil
}

func nodeTable(w io.Writer, st testbed.Status) {
	fmt.Fprintln(w)
	lines := [][]string{}
	for _, n := range st.Nodes {
		ns := "namespace"
		if !n.Alive {
			ns = "gone"
		}
		if len(n.Processes) == 0 {
			lines = append(lines, []string{n.Name, n.Kind, ns, "", "", ""})
		}
		for _, p := range n.Processes {
			alive := "running"
			if !p.Alive {
				alive = "ended"
			}
			lines = append(lines, []string{n.Name, n.Kind, ns, p.Name, strconv.Itoa(p.PID), alive})
		}
	}
	query.Table(w, "NODE KIND NAMESPACE PROCESS PID STATE", lines)
}

func (f *labFlags) execCmd() *cobra.Command {
	c := &cobra.Command{Use: "exec NODE -- COMMAND [ARGUMENT...]", Short: "Run a command in a node", Args: arguments(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, command := args[0], args[1:]
			if command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return usagef("no command: %s", cmd.UseLine())
			}
			lab, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer lab.Close()
			c := lab.CommandContext(cmd.Context(), node, command...)
			c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = c.Run()
			if ee := (*exec.ExitError)(nil); errors.As(err, &ee) && ee.ExitCode() > 0 {
				os.Exit(ee.ExitCode())
			}
			return err
		}}
	c.Flags().SetInterspersed(false) // what follows NODE belongs to the command
	return c
}

func (f *labFlags) faultCmd() *cobra.Command {
	return &cobra.Command{Use: "fault NODE:PORT down|up", Short: "Pull or plug the cable at a port", Args: arguments(2, 2),
		Long: `Pull or plug the cable at a port; both ends of its link lose or get carrier.

Prints the time, in nanoseconds since 1970, taken right before the system call. A
veth loses carrier when its other end is administratively down; the end that is shut
is the one that is not an inof-switch, else the one opposite to NODE:PORT.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			node, port, ok := strings.Cut(args[0], ":")
			if !ok || args[1] != "up" && args[1] != "down" {
				return usagef("%q %q: want NODE:PORT and down or up", args[0], args[1])
			}
			lab, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer lab.Close()
			at, err := lab.Fault(node, port, args[1] == "up")
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), at.UnixNano())
			return nil
		}}
}

func (f *labFlags) forwardCmd() *cobra.Command {
	return &cobra.Command{Use: "forward NODE off|on", Short: "Have a node drop what it should pass on, or not", Args: arguments(2, 2),
		Long: `Have a node drop the packets it should pass on between its links, or pass them on again.

Every carrier stays, and so do the node's own connections: a path that is silent, which
only BFD finds. Prints the time, in nanoseconds since 1970, taken right before the
system call.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return usagef("%q: want off or on", args[1])
			}
			lab, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer lab.Close()
			at, err := lab.Forward(args[0], args[1] == "on")
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), at.UnixNano())
			return nil
		}}
}

func (f *labFlags) startCmd() *cobra.Command {
	return &cobra.Command{Use: "start NODE [PROCESS]", Short: "Start what a node should run and does not", Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer lab.Close()
			return lab.Start(cmd.Context(), args[0], strings.Join(args[1:], ""))
		}}
}

func (f *labFlags) stopCmd() *cobra.Command {
	var kill bool
	c := &cobra.Command{Use: "stop NODE [PROCESS]", Short: "Stop a process of a node", Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer lab.Close()
			name := strings.Join(args[1:], "")
			if kill {
				_, err = lab.Kill(args[0], name)
				return err
			}
			return lab.Stop(args[0], name, testbed.StopGrace)
		}}
	c.Flags().BoolVar(&kill, "kill", false, "with SIGKILL, as a crash")
	return c
}

func (f *labFlags) benchCmd() *cobra.Command {
	opt, fault, priority := testbed.BenchOptions{}, "carrier", "unit"
	c := &cobra.Command{Use: "bench", Short: "Measure fault to notice across the demo's fabric, and its bound", Args: arguments(0, 0),
		Long: `Pulls a cable at tor1 of the demo's fabric again and again and measures how long it
takes until the kernel of a host at tor2 has received the notice. Beside it the bound:
a bare TCP write at tor1, relayed through spine and tor2 and put on the wire as a raw
frame to the same host. Then the way hop by hop, from the times that tor2 keeps of each notice.

The daemons of the switches, and the relays of the bound, run with the priority that
dist/systemd/inofd.service gives (SCHED_RR), where that is permitted; --priority normal leaves
it out: then they queue with the agents of the hosts, which are other machines elsewhere.

With --beside or --beside-env a second lab stands beside it, and its trials take turns with
those of the first: another release, or another setting, on the same machine in the same
minutes (--beside-env INOF_PORTS_CARRIER_SOURCE=netlink). With --telemetry 64 the switch
with the fault has as many subscribers as it takes, and all have a Prometheus.

With --fault path the spine drops what it should pass on, every carrier stays, and BFD
finds it: at 10, 50 and 100 ms x 3, from the last packet that got through to the notice,
beside the detection time.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // a reader that goes away must not keep the lab from being removed
			if err := privileged(cmd.Context()); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			opt.Options, opt.Relay, opt.Out = f.options(), []string{self, "lab", "relay"}, cmd.OutOrStdout()
			opt.Realtime = priority == "unit"
			opt.Progress = progress.To(cmd.ErrOrStderr(), "trials")
			if fault == "path" {
				_, err = testbed.BenchPath(cmd.Context(), opt)
				return err
			}
			if asJSON(cmd) {
				opt.Out = cmd.ErrOrStderr()
			}
			res, err := testbed.Bench(cmd.Context(), opt)
			if err != nil || !asJSON(cmd) {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(res)
		}}
	c.Flags().IntVar(&opt.Trials, "trials", 0, "how often the fault strikes; 0: 200 cables, 20 paths of each kind")
	c.Flags().StringVar(&opt.BesideBin, "beside", "", "directory of other programs, measured by turns with these")
	c.Flags().IntVar(&opt.Telemetry, "telemetry", 0, "streams of gNMI that follow the switch with the fault in a second lab, of which all are scraped each second; measured by turns with the first")
	c.Flags().StringToStringVar(&opt.BesideEnv, "beside-env", nil, "NAME=VALUE for the daemons of a second lab, measured by turns with the first")
	c.Flags().Var(&oneOf{&priority, []string{"unit", "normal"}}, "priority", "of the switches' daemons and of the bound: that of the systemd unit, or none")
	c.Flags().Var(&oneOf{&fault, []string{"carrier", "path"}}, "fault", "what strikes")
	return c
}

// newRelayCmd is what the bound of the benchmark runs in spine and tor2.
func newRelayCmd() *cobra.Command {
	return &cobra.Command{Use: "relay", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return testbed.RelayMain(args) }}
}
