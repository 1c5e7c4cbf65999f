package config

import (
	"fmt"
	"iter"
	"strings"

	"github.com/openinof/inof/internal/setting"
)

// item is one key of the configuration, declared once: a single value, a list, or a section
// with what is in it. Reading with its errors, the environment, comparing, and the row of
// docs/config.md (go test ./internal/config -update) follow.
type item struct {
	setting.Setting
	list  func(s *section, it *item) // reads a list
	keys  []item                     // of a section, or of the entries of a list
	check func(s *section)           // of a section: what must be right between its settings
	short func(text string) []string // of an entry written as one text: its keys and values
	// derived follows from others and is written nowhere, secret is not shown either: both
	// are compared.
	derived bool
	secret  Secret
}

// values are settings of a single value each.
func values(list ...setting.Setting) []item {
	out := make([]item, len(list))
	for i, s := range list {
		out[i].Setting = s
	}
	return out
}

// part is a section, read in the order of its keys and then checked as a whole.
func part(key string, keys []item, check func(s *section)) item {
	return item{Setting: setting.Setting{Key: key}, keys: keys, check: check}
}

// listed is a list with a way of its own to be read; text is what is in force.
func listed(key, allowed, doc string, text func() string, read func(s *section, it *item)) item {
	return item{Setting: setting.Setting{Key: key, Default: "[]", Allowed: allowed, Doc: doc, Text: text}, list: read}
}

// words is a list of single values; each takes one over, or says what is wrong with it.
func words(key, allowed, doc string, text func() string, each func(string) string) item {
	return listed(key, allowed, doc, text, func(s *section, it *item) { s.list(it.Key, it.Allowed, each) })
}

// entries is a list of entries with keys of their own; take gets each that was read.
func entries[T any](key, allowed, doc string, text func() string, keys func(*T) []item, take func(e *section, v *T)) item {
	it := listed(key, allowed, doc, text, func(s *section, it *item) {
		s.sections(it.Key, it.Allowed, it.short, func(e *section) {
			v := new(T)
			e.read(keys(v), false)
			take(e, v)
		})
	})
	it.keys = keys(new(T))
	return it
}

// fixed is the list where a change takes effect only after a restart.
func (it item) fixed() item { it.Restart = true; return it }

// documented is setting.Setting.Documented.
func (it item) documented(def, allowed string) item {
	it.Setting = it.Setting.Documented(def, allowed)
	return it
}

// isPart reports whether it is a section.
func (it *item) isPart() bool { return it.list == nil && it.keys != nil }

// read reads what is declared. What is not written has its default, or stays with keep.
func (s *section) read(list []item, keep bool) {
	for i := range list {
		if it := &list[i]; it.Reset != nil && !keep {
			it.Reset()
		}
	}
	for i := range list {
		switch it := &list[i]; {
		case it.derived:
		case it.isPart():
			sub := s.sub(it.Key)
			sub.read(it.keys, keep)
			if it.check != nil {
				it.check(sub)
			}
			sub.close()
		case it.list != nil:
			it.list(s, it)
		default:
			s.readValue(&it.Setting)
		}
	}
}

func (s *section) readValue(one *setting.Setting) {
	v, ok := s.scalar(one.Key, one.Allowed)
	if ok {
		if wrong := one.Read(v); wrong != "" {
			s.problem(one.Key, wrong, one.Allowed)
		}
	} else if one.Missing != "" && !s.has(one.Key) {
		s.problem(one.Key, one.Missing, one.Allowed)
	}
}

// each gives all that is set by items and the sections among them, with full keys.
func each(prefix string, list []item) iter.Seq2[string, *item] {
	return func(yield func(string, *item) bool) {
		for i := range list {
			it := &list[i]
			if !it.isPart() {
				if !yield(prefix+it.Key, it) {
					return
				}
				continue
			}
			for key, sub := range each(prefix+it.Key+".", it.keys) {
				if !yield(key, sub) {
					return
				}
			}
		}
	}
}

func join[T any](list []T) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, ", ")
}

// joined is what is in force of a list.
func joined[T any](list *[]T) func() string { return func() string { return join(*list) } }
