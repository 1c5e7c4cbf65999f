package main

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/config"
)

// checkFile says what is wrong with a configuration or zone file, and what it means on
// this machine: which ports it names.
func checkFile(path string) (string, error) {
	text, err := config.Check(path)
	if err != nil {
		return "", err
	}
	cfg, err := config.Load(path)
	if err != nil || len(cfg.Ports.Access) == 0 || cfg.Dataplane != "linux" {
		return text, nil // a zone file, or a device without ports of this machine
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
	return text + "\n" + portsOf(path, cfg, names), nil
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
