package gnmi

import (
	"strconv"
	"strings"

	"github.com/openinof/inof/internal/telemetry"
)

// object is a container, or an entry of a list, of which JSON is to be written.
type object struct {
	members map[string]any // leaves, *object, or *rows
}

// rows are the entries of a list, in the order in which they came.
type rows struct {
	index map[string]*object
	list  []*object
}

func newObject() *object { return &object{members: map[string]any{}} }

// put adds a value that stands below an element of its path.
func (o *object) put(l *leafNode, v *telemetry.Value, depth int, ietf bool) {
	keys := v.Keys
	for _, e := range l.elems[:depth] {
		keys = keys[len(e.keys):]
	}
	from := o
	for i := depth; i < len(l.elems); i++ {
		e := &l.elems[i]
		name := e.name
		if ietf && (i == depth || e.module != l.elems[i-1].module) {
			name = e.module + ":" + name
		}
		if i == len(l.elems)-1 {
			from.members[name] = jsonValue(v, ietf)
			return
		}
		if len(e.keys) == 0 {
			next, ok := from.members[name].(*object)
			if !ok {
				next = newObject()
				from.members[name] = next
			}
			from = next
			continue
		}
		list, ok := from.members[name].(*rows)
		if !ok {
			list = &rows{index: map[string]*object{}}
			from.members[name] = list
		}
		from = list.entry(e, keys[:len(e.keys)])
		keys = keys[len(e.keys):]
	}
}

// entry gives the entry of a list with its keys as members.
func (r *rows) entry(e *elem, keys []string) *object {
	id := strings.Join(keys, "\x00")
	o := r.index[id]
	if o == nil {
		o = newObject()
		for i, k := range e.keys {
			o.members[k] = keyJSON(e, k, keys[i])
		}
		r.index[id], r.list = o, append(r.list, o)
	}
	return o
}

// keyJSON is a key as its type has it: all are texts but the number of a priority.
func keyJSON(e *elem, key, value string) any {
	if e.name == "priority" && key == "id" {
		if n, err := strconv.ParseUint(value, 10, 8); err == nil {
			return n
		}
	}
	return value
}

// plain is what encoding/json writes.
func (o *object) plain() map[string]any {
	out := make(map[string]any, len(o.members))
	for name, v := range o.members {
		switch v := v.(type) {
		case *object:
			out[name] = v.plain()
		case *rows:
			list := make([]any, len(v.list))
			for i, x := range v.list {
				list[i] = x.plain()
			}
			out[name] = list
		default:
			out[name] = v
		}
	}
	return out
}
