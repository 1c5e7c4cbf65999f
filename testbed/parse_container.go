package testbed

import (
	"path"
	"slices"
	"strings"
)

// images are the names of the container images of this project, whatever stands before and
// behind them.
var images = []string{"inof", "inof-lab"}

// Where the image has what a node is given with `binds`.
const (
	boundConfig = "/etc/inof/inofd.yaml"
	boundZones  = "/var/lib/inof/zones.yaml"
)

// ownImage reports whether an image is one of this project: registry/inof:tag, for example.
func ownImage(image string) bool {
	name, _, _ := strings.Cut(image, "@")
	name, _, _ = strings.Cut(path.Base(name), ":")
	return slices.Contains(images, name)
}

// container makes a node of kind linux with this project's image what its container would be:
// a switch with the bound files (cmd: none, or inofd run), or a host with the agent of its cmd
// (snsd --interface ...). defs are what counts for the node, in falling order of weight. What
// is of no use here is noted.
func (w *walker) container(n *Node, defs []*nodeDef, at string) {
	var image, cmd located
	var binds []located
	for _, d := range defs {
		image, cmd = firstOf(image, d.image), firstOf(cmd, d.cmd)
		binds = append(binds, d.binds...)
	}
	if n.Kind != KindLinux || !ownImage(image.s) {
		for _, d := range defs {
			for _, i := range d.container {
				if !slices.Contains(w.ignored, i) {
					w.ignored = append(w.ignored, i)
				}
			}
		}
		return
	}
	bad := func(l located, key, msg string) {
		w.errs = append(w.errs, &ParseError{File: w.file, Line: l.line, Path: at + "." + key, Msg: msg})
	}
	words, err := splitCommandOrNone(expandMagic(cmd.s, n.Name))
	if err != nil {
		bad(cmd, "cmd", err.Error())
		return
	}
	n.Container = true
	switch {
	case len(words) == 0, slices.Equal(words, []string{"inofd", "run"}):
		n.Kind = KindSwitch
		w.bound(n, binds, bad)
	case words[0] == "snsd":
		n.Kind = KindHost
		i := slices.Index(words, "--interface")
		if i < 0 || i+1 == len(words) {
			bad(cmd, "cmd", "names no port: want snsd --interface eth1 --address ADDRESS ...")
			return
		}
		n.Agents = []Agent{{Port: words[i+1], Args: append(words[1:], "--output", "json")}}
	default:
		bad(cmd, "cmd", "want `inofd run` or `snsd --interface IFNAME --address ADDRESS ...`: that is what the image has")
	}
}

// bound takes the files that a switch is given.
func (w *walker) bound(n *Node, binds []located, bad func(located, string, string)) {
	for _, b := range binds {
		parts := strings.Split(expandMagic(b.s, n.Name), ":")
		if len(parts) < 2 {
			bad(b, "binds", "want SOURCE:TARGET")
			continue
		}
		var file *string
		switch parts[1] {
		case boundConfig:
			file = &n.StartupConfig
		case boundZones:
			file = &n.Zones
		default:
			w.ignored = append(w.ignored, Ignored{Line: b.line, Path: "binds", Why: "only " + boundConfig + " and " + boundZones + " are taken"})
			continue
		}
		if err := validStartup(parts[0]); err != nil {
			bad(b, "binds", err.Error())
		} else if *file == "" {
			*file = parts[0]
		}
	}
}
