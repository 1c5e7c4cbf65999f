package api

import "strings"

// Early reports whether all losses are heard before netlink tells them.
func (s *CarrierSource) Early() bool { return s.Source == "fentry" || s.Source == "kprobe" }

// Heard says it in words, with the reason where there is a better source.
func (s *CarrierSource) Heard() string {
	text := "heard by " + s.Source
	switch s.Source {
	case "netlink":
		text += " alone, which is late"
	case "tracepoint":
		text += ", but for those that the kernel holds back"
	}
	if s.Why == "" || s.Early() {
		return text
	}
	return text + " (" + strings.ReplaceAll(s.Why, "\n", "; ") + ")"
}
