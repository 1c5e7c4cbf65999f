package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/daemon"
	"github.com/openinof/inof/internal/query"
	"github.com/spf13/cobra"
)

// checkCommand is `inofd check`.
func checkCommand() *cobra.Command {
	var from source
	var format string
	c := &cobra.Command{
		Use: "check [FILE]", Short: "check a configuration or zone file, say everything that is wrong with it, what is set where, and which ports of this machine it names",
		Args: cobra.MaximumNArgs(1), SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := from.file()
			if len(args) == 1 {
				path = args[0]
			}
			return check(cmd.OutOrStdout(), path, from.given, format)
		},
	}
	from.flags(c)
	c.Flags().StringVarP(&format, "output", "o", "text", "text, or json with every setting")
	return c
}

// check says what is wrong with a configuration or zone file, and what it means.
func check(w io.Writer, path string, given *config.Given, format string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("--output %q, allowed: text, json", format)
	}
	text, cfg, err := config.Check(path, given)
	if err == nil && cfg != nil {
		err = daemon.CheckHere(path, cfg)
	}
	if err == nil {
		var ports string
		if ports, err = portsOfMachine(path, cfg); ports != "" {
			text += "\n" + ports
		}
	}
	if format == "json" {
		return errors.Join(writeReport(w, path, text, cfg, err), err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(w, text)
	if cfg != nil {
		writeOrigins(w, cfg)
	}
	return nil
}

// writeOrigins lists what is set, and where.
func writeOrigins(w io.Writer, cfg *config.Config) {
	var cells [][]string
	for _, s := range cfg.Settings() {
		if s.From != "default" {
			cells = append(cells, []string{s.Key, s.Value, s.From})
		}
	}
	query.Table(w, "SETTING VALUE FROM", cells)
}

// writeReport is the answer for programs.
func writeReport(w io.Writer, path, text string, cfg *config.Config, err error) error {
	report := struct {
		File     string           `json:"file"`
		Good     bool             `json:"good"`
		Problems []string         `json:"problems"`
		Text     []string         `json:"text"`
		Settings []config.Setting `json:"settings"`
	}{path, err == nil, []string{}, []string{}, []config.Setting{}}
	if err != nil {
		report.Problems = strings.Split(err.Error(), "\n")
	} else {
		report.Text = strings.Split(text, "\n")
	}
	if cfg != nil {
		report.Settings = cfg.Settings()
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

// portsOfMachine says which ports of this machine a configuration names; nothing for a zone
// file, and for a device without ports of this machine.
func portsOfMachine(path string, cfg *config.Config) (string, error) {
	if cfg == nil || len(cfg.Ports.Access) == 0 || cfg.Dataplane != "linux" {
		return "", nil
	}
	list, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("ports of this machine: %w", err)
	}
	names := []string{}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	return strings.Join(append(deafOf(path, cfg, names, sysfsKind), portsOf(path, cfg, names)), "\n"), nil
}

// deafOf warns of interfaces that are named as ports and hear no LLDP: a bridge leaves frames for its
// link to its ports (IEEE 802.1Q clause 8.6.3), and a VLAN has only those that are tagged with it.
func deafOf(path string, cfg *config.Config, ports []string, kind func(port string) string) (list []string) {
	access, err := fabric.ParseNames(cfg.Ports.Access)
	if err != nil {
		return nil
	}
	why := map[string]string{
		"bridge": "is a bridge and hears no host: name its ports",
		"vlan":   "is a VLAN and hears no host: name the port that it is on",
	}
	for _, p := range ports {
		if text := why[kind(p)]; text != "" && access.Match(p) {
			list = append(list, fmt.Sprintf("%s: warning: ports.access: %s %s", path, p, text))
		}
	}
	return list
}

// sysfsKind is what the kernel calls an interface that is not a plain one, such as bridge or vlan.
func sysfsKind(port string) string {
	b, err := os.ReadFile(filepath.Join("/sys/class/net", port, "uevent"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			return kind
		}
	}
	return ""
}

// mostPorts bounds how many ports a line names.
const mostPorts = 64

// portsOf says which ports of a machine a configuration names, and which of its entries
// name none.
func portsOf(path string, cfg *config.Config, ports []string) string {
	slices.Sort(ports)
	access, err := fabric.ParseNames(cfg.Ports.Access)
	if err != nil {
		return fmt.Sprintf("%s: warning: ports.access: %v", path, err)
	}
	var lines []string
	warn := func(key string, n fabric.Names) {
		for _, entry := range n.Idle(ports) {
			lines = append(lines, fmt.Sprintf("%s: warning: %s: %q matches no port of this machine", path, key, entry))
		}
	}
	warn("ports.access", access)
	for i := range cfg.ErrorDown.Ports {
		warn(fmt.Sprintf("error-down.ports[%d].names", i), cfg.ErrorDown.Ports[i].Names)
	}
	in, out := []string{}, []string{}
	for _, p := range ports {
		if access.Match(p) {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	lines = append(lines, fmt.Sprintf("%s: ports.access names %d of this machine's ports: %s", path, len(in), fewPorts(in)),
		fmt.Sprintf("%s: ports left alone: %s", path, fewPorts(out)))
	return strings.Join(lines, "\n")
}

func fewPorts(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	text := strings.Join(list[:min(len(list), mostPorts)], ", ")
	if more := len(list) - mostPorts; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
