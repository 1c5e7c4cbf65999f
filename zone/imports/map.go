package imports

import (
	"strings"

	"github.com/openinof/inof/zone"
)

// Map says which members of ours stand for a name of theirs: a WWPN, DOMAIN,PORT of a Brocade
// fabric, or an interface of an MDS switch.
type Map struct {
	members map[string][]zone.Member
}

// ParseMap reads a line for each name and member: the name, a space or a comma, the member as it
// is written in a zone, a comma and a comment where one likes. A name may have several lines. Empty
// lines and those that begin with # are left out. The error is *Errors.
//
//	10:00:00:00:c9:2b:c9:0c  192.0.2.1
//	50:06:01:60:3b:a0:11:22, nqn.2026-11.org.example:array1, port A0
//	2,14                     port:192.0.2.250/Ethernet14
func ParseMap(text []byte, rules zone.Rules) (*Map, error) {
	m := &Map{members: map[string][]zone.Member{}}
	var errs Errors
	for n, line := range numbered(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest := cutName(line)
		rest, _, _ = strings.Cut(rest, ",")
		if rest = strings.TrimSpace(rest); name == "" || rest == "" {
			errs.add(n, "%.80q is no name and a member", line)
			continue
		}
		member, err := zone.ParseMember(rest)
		if err == nil {
			err = rules.CheckMember(member)
		}
		if err != nil {
			errs.add(n, "%v", err)
			continue
		}
		m.members[name] = append(m.members[name], member)
	}
	return m, errs.or()
}

// cutName takes the name from the beginning of a line of a map.
func cutName(line string) (name, rest string) {
	i := strings.IndexAny(line, ", \t")
	if i < 0 {
		return line, ""
	}
	name, rest = line[:i], line[i+1:]
	if line[i] == ',' && digits(name) { // DOMAIN,PORT
		j := strings.IndexAny(rest, ", \t")
		if j > 0 && digits(rest[:j]) {
			return name + "," + rest[:j], rest[j+1:]
		}
	}
	return key(name), strings.TrimLeft(rest, " \t,")
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// key is the one form of a name: a WWN in lower case with colons, others as they are.
func key(name string) string {
	if w, ok := wwn(name); ok {
		return w
	}
	return name
}

// wwn reads a World Wide Name: 8 octets in hexadecimal, with colons or without.
func wwn(s string) (string, bool) {
	plain := strings.ToLower(strings.ReplaceAll(s, ":", ""))
	if len(plain) != 16 || strings.Trim(plain, "0123456789abcdef") != "" || len(s) != 16 && len(s) != 23 {
		return "", false
	}
	out := make([]byte, 0, 23)
	for i := 0; i < 16; i += 2 {
		if i > 0 {
			out = append(out, ':')
		}
		out = append(out, plain[i], plain[i+1])
	}
	if len(s) == 23 && strings.ToLower(s) != string(out) {
		return "", false
	}
	return string(out), true
}

// numbered walks the lines of a text with their numbers from 1 on.
func numbered(text []byte) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; !yield(n, strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}
