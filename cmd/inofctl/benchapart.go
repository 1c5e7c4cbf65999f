package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/testbed/apart"
)

func (a *app) benchHardZoningCmd() *cobra.Command {
	opt := apart.Default
	c := &cobra.Command{Use: "hardzoning", Short: "What hard zoning costs a frame, beside nftables and beside no filter", Args: arguments(0, 0),
		Long: `Measure hard zoning in this machine's kernel, as root: the time to load and to change rows, the memory of
the tables, one run of the program (BPF_PROG_TEST_RUN), and one frame over a cable (veth) through each
kind of filter, beside the same policy in sets of nftables, beside a program of one lookup in a table of
all pairs (the bound), and beside no filter, all in turn.`}
	c.Flags().IntSliceVar(&opt.Memberships, "memberships", opt.Memberships, "sizes of the policy, in pairs that may talk, 1..1000000")
	c.Flags().IntVar(&opt.Flows, "flows", opt.Flows, "different pairs whose frames come in turn, 1..65536")
	c.Flags().IntVar(&opt.Frames, "frames", opt.Frames, "frames of one measurement on the cable")
	c.Flags().IntVar(&opt.Rounds, "rounds", opt.Rounds, "measurements of each kind; the least counts")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, n := range opt.Memberships {
			if n < 1 || n > 1_000_000 {
				return usagef("--memberships: %d, want 1..1000000", n)
			}
		}
		if opt.Flows < 1 || opt.Flows > 1<<16 {
			return usagef("--flows: %d, want 1..65536", opt.Flows)
		}
		if opt.Frames < 100 || opt.Rounds < 1 {
			return usagef("--frames: want 100 or more; --rounds: want 1 or more")
		}
		opt.Progress = progress.To(cmd.ErrOrStderr(), "rounds")
		res, err := apart.Bench(cmd.Context(), opt)
		if err != nil {
			return err
		}
		return a.print(res, func(w io.Writer) { printHardZoning(w, res) })
	}
	return c
}

func printHardZoning(w io.Writer, r *apart.Result) {
	fmt.Fprintf(w, "Linux %s, %d processors\n", r.Kernel, r.CPUs)
	for _, l := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", l)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\nmemberships\tload ms\tnft load ms\ttables MB\tone pair µs\tzone change µs\trun: nothing\tone lookup\tXDP ns\tTC ns\tXDP denied ns\t\n")
	for i := range r.Sizes {
		s := &r.Sizes[i]
		fmt.Fprintf(tw, "%d\t%.1f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", s.Memberships, s.LoadMS, s.NFTLoadMS, s.MemoryMB, s.UpdateUS.Median, s.ZoneUS.Median,
			s.Run["nothing"], s.Run["lookup"], s.Run["xdp permitted"], s.Run["tc permitted"], s.Run["xdp denied"])
	}
	kinds := []string{apart.Lookup, string(hardzone.AttachNative), string(hardzone.AttachTC), string(hardzone.AttachGeneric), apart.NFTables}
	for _, t := range []struct {
		title string
		took  func(*apart.Size) map[string]apart.Spread
		above func(*apart.Size, string) float64
	}{
		{"of a driver", func(s *apart.Size) map[string]apart.Spread { return s.Driver }, (*apart.Size).AboveDriver},
		{"of a socket", func(s *apart.Size) map[string]apart.Spread { return s.Wire }, (*apart.Size).Above},
	} {
		fmt.Fprintf(tw, "\nns a frame %s\tno filter\tbare\tone lookup\tnative\ttc\tgeneric\tnftables\tabove none: one lookup\tnative\ttc\tgeneric\tnftables\t\n", t.title)
		for i := range r.Sizes {
			s := &r.Sizes[i]
			fmt.Fprintf(tw, "%d\t", s.Memberships)
			for _, way := range append([]string{apart.None, apart.Bare}, kinds...) {
				fmt.Fprintf(tw, "%.0f\t", t.took(s)[way].Low)
			}
			for _, way := range kinds {
				fmt.Fprintf(tw, "%.0f\t", t.above(s, way))
			}
			fmt.Fprintln(tw)
		}
	}
	printHardZoningGoals(tw, r)
	tw.Flush()
}

// printHardZoningGoals holds the run against what is aimed for, frames as a driver has them, where
// native XDP and its bound could be measured.
func printHardZoningGoals(w io.Writer, r *apart.Result) {
	native := string(hardzone.AttachNative)
	for i := range r.Sizes {
		if took := r.Sizes[i].Driver; took[native].Low == 0 || took[apart.Lookup].Low == 0 {
			return
		}
	}
	fmt.Fprint(w, "\ngoals, native, of a driver\tabove none ns (100)\tof nftables (0.25)\tof the smallest (1.3)\tof one lookup\t\n")
	for i := range r.Sizes {
		s := &r.Sizes[i]
		ours := s.AboveDriver(native)
		fmt.Fprintf(w, "%d\t%.0f\t", s.Memberships, ours)
		if nft := s.AboveDriver(apart.NFTables); nft > 0 {
			fmt.Fprintf(w, "%.2f\t", ours/nft)
		} else {
			fmt.Fprint(w, "-\t")
		}
		fmt.Fprintf(w, "%.2f\t%.2f\t\n", s.Driver[native].Low/r.Sizes[0].Driver[native].Low, s.Driver[native].Low/s.Driver[apart.Lookup].Low)
	}
}
