package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostagent/fencing"
	"github.com/openinof/inof/hostkernel"
)

// checked is what `snsd check` finds.
type checked struct {
	Notes       []string              `json:"notes"` // what of the existing agent's file is taken otherwise
	Ports       []checkedPort         `json:"ports"`
	Missing     []string              `json:"missing"` // settings that find no interface at present
	Mode        hostagent.Mode        `json:"mode"`
	Fence       hostagent.FenceMode   `json:"fence"`
	FenceWait   string                `json:"fence_wait"`
	Controllers []hostagent.Foresight `json:"controllers"`
	Error       string                `json:"error,omitempty"` // of reading them
}

type checkedPort struct {
	Interface string       `json:"interface"`
	Addresses []string     `json:"addresses"`
	Switch    []fabric.MAC `json:"switch,omitempty"` // named; else the one that LLDP shows
}

func checkCmd() *cobra.Command {
	var f files
	output := "text"
	c := &cobra.Command{Use: "check [FILE]", Short: "Say what is wrong with the configuration, how that of the existing agent (FILE.conf) is taken, and how paths would be fenced by it", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && filepath.Ext(args[0]) == ".conf" {
				f.yaml, f.existing = "", args[0]
			} else if len(args) == 1 {
				f.yaml, f.existing = args[0], ""
			}
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: want text or json", output)
			}
			found, err := check(cmd.Context(), &f)
			if output == "json" && err == nil {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(found)
			}
			found.print(cmd.OutOrStdout())
			return err
		}}
	f.flags(c)
	c.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return c
}

// check reads the configuration, and what of this host it finds. With an error the notes count.
func check(ctx context.Context, f *files) (found checked, err error) {
	cfg, notes, err := hostagent.Load(f.yaml, f.existing)
	found = checked{Notes: append([]string{}, notes...), Ports: []checkedPort{}, Missing: []string{}, Controllers: []hostagent.Foresight{}}
	if err != nil {
		return found, err
	}
	found.Mode, found.Fence, found.FenceWait = cfg.Mode, cfg.Fence, cfg.FenceWait.String()
	have, err := hostkernel.Interfaces()
	if err != nil {
		return found, err
	}
	ports, missing := cfg.Cables(have)
	found.Missing = append(found.Missing, missing...)
	for _, p := range ports {
		port := checkedPort{Interface: p.Interface, Switch: p.Switch}
		for _, a := range p.Addrs {
			port.Addresses = append(port.Addresses, a.String())
		}
		found.Ports = append(found.Ports, port)
	}
	ctx, cancel := context.WithTimeout(ctx, foreseeWithin)
	defer cancel()
	var running foresight // what switches announce is known to a running agent alone
	_ = ask(ctx, cfg.Socket, "foresight", foreseeWithin, &running)
	actor := hostagent.NewActor(kernel(), cfg.Policy(hostkernel.Identity{}), nil, nil, nil)
	creds, err := fencing.NewCredentials(cfg.FenceService)
	if err != nil {
		return found, err
	}
	ways, reset := fencers(hostkernel.Tree{}, cfg.FenceService, creds)
	reset.Learn()
	actor.FenceBy(ways)
	list, err := actor.Foresee(ctx, running.Ports)
	if found.Controllers = append(found.Controllers, list...); err != nil {
		found.Error = err.Error()
	}
	return found, nil
}

func (c *checked) print(w io.Writer) {
	for _, n := range c.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	for _, p := range c.Ports {
		fmt.Fprintf(w, "%s: %v", p.Interface, p.Addresses)
		if len(p.Switch) > 0 {
			fmt.Fprintf(w, " switch %v", p.Switch)
		}
		fmt.Fprintln(w)
	}
	for _, m := range c.Missing {
		fmt.Fprintln(w, "at present:", m)
	}
	if c.Mode != "" {
		fmt.Fprintf(w, "mode %s, fence %v, fence-wait %s\n", c.Mode, c.Fence, c.FenceWait)
	}
	for _, a := range adviseFences(&foresight{Fence: c.Fence, Mode: string(c.Mode), Controllers: c.Controllers}, nil) {
		fmt.Fprintln(w, a.Text)
	}
	if c.Error != "" {
		fmt.Fprintln(w, "controllers:", c.Error)
	}
}
