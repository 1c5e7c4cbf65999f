package syslog

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a message.
const (
	// MaxStream is the longest message on a connection, in bytes (RFC 5425 section 4.3.1: what
	// receivers should take).
	MaxStream = 8192
	// MaxDatagram is the longest in a datagram, in bytes (RFC 5426 section 3.2: what receivers
	// should take).
	MaxDatagram = 2048

	maxHost  = 255 // characters (RFC 5424 section 6)
	maxApp   = 48
	maxProc  = 128
	maxMsgID = 32
	maxName  = 32  // of a parameter or of the structured data, characters (section 6.3.3)
	maxValue = 512 // bytes of a parameter; ours
	maxText  = 256 // bytes of the text that are kept whatever the parameters take; ours
)

// Severity is how bad it is, 0..7 (RFC 5424 section 6.2.1, table 2).
type Severity int

// Severities that a device uses.
const (
	Warning Severity = 4
	Info    Severity = 6
)

// Param is one value of the structured data.
type Param struct{ Name, Value string }

// Message is one line of a log. What a field must not hold is replaced by '_' in names and by a
// space in values; what is too long is cut.
type Message struct {
	Number   uint64 // in its log; not sent
	Facility int    // 0..23
	Severity Severity
	Time     time.Time // microseconds are sent
	Host     string
	App      string
	Proc     string
	ID       string  // the kind of message
	Data     string  // the name of the structured data: name@enterprise
	Params   []Param // those without a value are left out
	Text     string
}

// Append adds the message to dst, at most limit bytes of it: parameters that find no room are
// left out, then the text is cut.
func (m *Message) Append(dst []byte, limit int) []byte {
	start := len(dst)
	dst = append(dst, '<')
	dst = strconv.AppendInt(dst, int64(m.Facility*8+int(m.Severity)), 10)
	dst = append(dst, ">1 "...)
	dst = m.Time.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	for _, f := range []struct {
		text string
		most int
	}{{m.Host, maxHost}, {m.App, maxApp}, {m.Proc, maxProc}, {m.ID, maxMsgID}} {
		dst = append(dst, ' ')
		dst = appendName(dst, f.text, f.most, "")
	}
	dst = append(dst, ' ', '[')
	dst = appendName(dst, m.Data, maxName, `=]"`)
	text := plain(m.Text)
	room := limit - min(len(text), maxText) - len("] ")
	for _, p := range m.Params {
		if p.Value == "" {
			continue
		}
		before := len(dst)
		dst = append(dst, ' ')
		dst = appendName(dst, p.Name, maxName, `=]"`)
		dst = append(dst, '=', '"')
		dst = appendValue(dst, p.Value)
		dst = append(dst, '"')
		if len(dst)-start > room {
			dst = dst[:before]
		}
	}
	dst = append(dst, ']')
	if text == "" {
		return dst
	}
	dst = append(dst, ' ')
	return append(dst, cut(text, limit-(len(dst)-start))...)
}

// appendName adds printable ASCII without spaces and without what is forbidden beside; "-" if
// there is none (NILVALUE).
func appendName(dst []byte, s string, most int, forbidden string) []byte {
	if s == "" {
		return append(dst, '-')
	}
	for i, n := 0, 0; i < len(s) && n < most; n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r <= ' ' || r > '~' || strings.ContainsRune(forbidden, r) {
			r = '_'
		}
		dst = append(dst, byte(r))
	}
	return dst
}

// appendValue adds UTF-8 with what section 6.3.3 has escaped.
func appendValue(dst []byte, s string) []byte {
	s = cut(plain(s), maxValue)
	for i := range len(s) {
		if c := s[i]; c == '"' || c == '\\' || c == ']' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return dst
}

// plain is valid UTF-8 without control characters: names and NQNs of hosts are in it, and a
// line feed would begin a line of the host's own in many logs.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "_"))
}

// cut is s, or as many whole characters of it as there is room for.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:max(most, 0)]
}
