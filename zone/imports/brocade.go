package imports

import (
	"strings"

	"github.com/openinof/inof/zone/change"
)

// Brocade reads what cfgshow prints, or the commands alicreate, zonecreate, cfgcreate, aliadd,
// zoneadd, cfgadd and cfgenable (Fabric OS Command Reference). Of cfgshow the defined configuration
// counts; which zone set is active says the effective one. What marks a peer zone is
// left out: hosts of one role never see each other here. The error is *Errors.
func Brocade(text []byte, o Options) (*change.Plan, error) {
	b := &brocade{builder: builder{o: o}}
	for n, line := range b.lines(text) {
		b.line(n, line)
	}
	return b.plan()
}

type brocade struct {
	builder
	effective bool  // the defined configuration is over
	open      *list // what a continued line belongs to
}

func (b *brocade) line(n int, line string) {
	text := strings.TrimSpace(line)
	word, rest, _ := strings.Cut(text, " ")
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		word, rest = text[:i], strings.TrimSpace(text[i:])
	}
	switch lower := strings.ToLower(word); {
	case text == "" || strings.HasPrefix(text, "#"):
		b.open = nil
	case strings.HasPrefix(strings.ToLower(text), "defined configuration"):
		b.effective, b.open = false, nil
	case strings.HasPrefix(strings.ToLower(text), "effective configuration"):
		b.effective, b.open = true, nil
	case lower == "cfg:" || lower == "zone:" || lower == "alias:":
		b.shown(n, lower, rest)
	case b.command(n, lower, rest):
		b.open = nil
	case b.effective: // members of the effective configuration, with aliases resolved
	case b.open != nil && line != text:
		b.open.members = append(b.open.members, items(n, text)...)
	default:
		b.errs.add(n, "%.80q is nothing that cfgshow prints, and no command that makes zones", text)
	}
}

// shown reads the first line of something that cfgshow prints.
func (b *brocade) shown(n int, kind, rest string) {
	name, members := rest, ""
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		name, members = rest[:i], rest[i:]
	}
	switch {
	case name == "":
		b.errs.add(n, "%s without a name", kind)
		b.open = &list{}
		return
	case b.effective:
		if kind == "cfg:" {
			b.active = ref{name, n}
		}
		return
	}
	b.open = b.begin(strings.TrimSuffix(kind, ":"), b.of(kind), ref{name, n})
	b.open.members = append(b.open.members, items(n, members)...)
}

func (b *brocade) of(kind string) *lists {
	switch kind[:1] {
	case "a":
		return &b.aliases
	case "z":
		return &b.zones
	}
	return &b.sets
}

// items are the members of a line, with semicolons between them.
func items(n int, text string) (out []ref) {
	for _, item := range strings.Split(text, ";") {
		item = strings.TrimSpace(item)
		if item == "" || property(item) {
			continue
		}
		out = append(out, ref{item, n})
	}
	return out
}

// property reports whether a member is the property member of a peer zone, which is no host:
// 00:02:00:00:00 and three octets.
func property(item string) bool {
	w, ok := wwn(item)
	return ok && strings.HasPrefix(w, "00:02:00:00:00")
}

// command reads one command; false: it is none.
func (b *brocade) command(n int, word, rest string) bool {
	kind, add := "", strings.HasSuffix(word, "add")
	switch word {
	case "alicreate", "aliadd":
		kind = "alias"
	case "zonecreate", "zoneadd":
		kind = "zone"
	case "cfgcreate", "cfgadd":
		kind = "cfg"
	case "cfgenable":
		args, _ := arguments(rest)
		if len(args) != 1 {
			b.errs.add(n, "cfgenable wants the name of a configuration")
			return true
		}
		b.active = ref{args[0], n}
		return true
	case "cfgsave", "cfgclear":
		return true
	default:
		return false
	}
	args, ok := arguments(rest)
	if len(args) > 0 && args[0] == "--peerzone" {
		args, ok = peerZone(args[1:])
	}
	if !ok || len(args) != 2 {
		b.errs.add(n, `%s wants "NAME", "MEMBER; MEMBER"`, word)
		return true
	}
	name := ref{args[0], n}
	var l *list
	if add {
		if l = b.of(kind).by[name.text]; l == nil {
			b.errs.add(n, "%s: %s %q is not there yet", word, kind, name.text)
			return true
		}
	} else {
		l = b.begin(kind, b.of(kind), name)
	}
	l.members = append(l.members, items(n, args[1])...)
	return true
}

// arguments takes the arguments of a command apart: in quotes or not, with commas or spaces
// between. false: a quote is not closed.
func arguments(text string) (args []string, ok bool) {
	for text = strings.TrimLeft(text, " \t,"); text != ""; text = strings.TrimLeft(text, " \t,") {
		if q := text[0]; q == '"' || q == '\'' {
			end := strings.IndexByte(text[1:], q)
			if end < 0 {
				return args, false
			}
			args, text = append(args, text[1:1+end]), text[end+2:]
			continue
		}
		end := strings.IndexAny(text, " \t,")
		if end < 0 {
			end = len(text)
		}
		args, text = append(args, text[:end]), text[end:]
	}
	return args, true
}

// peerZone gives name and members of: NAME -principal "M; M" -members "M; M".
func peerZone(args []string) ([]string, bool) {
	if len(args) != 5 {
		return nil, false
	}
	members := ""
	for i := 1; i < 5; i += 2 {
		if args[i] != "-principal" && args[i] != "-members" {
			return nil, false
		}
		members += args[i+1] + ";"
	}
	return []string{args[0], members}, true
}
