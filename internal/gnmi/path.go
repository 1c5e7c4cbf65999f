package gnmi

import (
	"slices"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of a path, in elements and bytes.
const (
	maxSteps = 64
	maxKeys  = 16
	maxName  = 1024
)

// step is one element of a path that somebody asks for: a name, "*" for any or "..." for any number
// of any; keys that are left out, or "*", are any.
type step struct {
	name   string
	module string // empty: whichever
	keys   map[string]string
}

// query is a path that somebody asks for.
type query struct {
	steps  []step
	origin string   // as asked, to be echoed
	only   []string // modules that count; nil: all
}

// parse joins a prefix and a path, either of which may be nil. The deprecated field element is
// left out of account: gnmi_cli sets it beside elem.
func parse(prefix, path *pb.Path) (*query, error) {
	q := &query{origin: prefix.GetOrigin()}
	if o := path.GetOrigin(); o != "" {
		if q.origin != "" && q.origin != o {
			return nil, status.Errorf(codes.InvalidArgument, "the prefix has origin %.64q and the path %.64q: give one of them", q.origin, o)
		}
		q.origin = o
	}
	if t := path.GetTarget(); t != "" {
		return nil, status.Errorf(codes.InvalidArgument, "target %.64q stands in a path: it belongs into the prefix", t)
	}
	elems := slices.Concat(prefix.GetElem(), path.GetElem())
	if len(elems) > maxSteps {
		return nil, status.Errorf(codes.InvalidArgument, "a path of %d elements: at most %d are taken", len(elems), maxSteps)
	}
	if q.origin != "" && q.origin != "openconfig" {
		if !slices.ContainsFunc(modules, func(m struct{ root, name, organization, version string }) bool { return m.name == q.origin }) {
			return nil, status.Errorf(codes.Unimplemented, "origin %.64q is not known: leave it out, or give openconfig or a module that Capabilities names", q.origin)
		}
		q.only = []string{q.origin}
	}
	for i, e := range elems {
		s := step{name: e.GetName(), keys: e.GetKey()}
		if module, name, ok := strings.Cut(s.name, ":"); ok {
			s.module, s.name = module, name
		}
		switch {
		case s.name == "":
			return nil, status.Errorf(codes.InvalidArgument, "element %d of a path has no name", i+1)
		case len(e.GetName()) > maxName:
			return nil, status.Errorf(codes.InvalidArgument, "element %d of a path has a name of %d bytes: at most %d are taken", i+1, len(e.GetName()), maxName)
		case len(s.keys) > maxKeys:
			return nil, status.Errorf(codes.InvalidArgument, "element %d of a path has %d keys: at most %d are taken", i+1, len(s.keys), maxKeys)
		case s.name == "..." && len(s.keys) > 0:
			return nil, status.Errorf(codes.InvalidArgument, "element %d of a path is ... and has keys", i+1)
		}
		for k, v := range s.keys {
			if k == "" || len(k) > maxName || len(v) > maxName {
				return nil, status.Errorf(codes.InvalidArgument, "element %d of a path has a key without a name, or one of more than %d bytes", i+1, maxName)
			}
		}
		if s.name == "..." && len(q.steps) > 0 && q.steps[len(q.steps)-1].name == "..." {
			continue // says nothing new
		}
		q.steps = append(q.steps, s)
	}
	return q, nil
}

// models narrows the query to modules that a client names.
func (q *query) models(list []*pb.ModelData) error {
	if len(list) == 0 {
		return nil
	}
	var only []string
	for _, m := range list {
		i := slices.IndexFunc(modules, func(x struct{ root, name, organization, version string }) bool { return x.name == m.GetName() })
		if i < 0 || m.GetVersion() != "" && m.GetVersion() != modules[i].version {
			return status.Errorf(codes.InvalidArgument, "use_models: %.64q %.32q is none that Capabilities names", m.GetName(), m.GetVersion())
		}
		if q.only == nil || slices.Contains(q.only, m.GetName()) {
			only = append(only, m.GetName())
		}
	}
	q.only = append(only, "") // not nil
	return nil
}

// reaches reports whether a leaf is of the modules that count.
func (q *query) reaches(l *leafNode) bool {
	return q.only == nil || slices.Contains(q.only, l.elems[len(l.elems)-1].module) || slices.Contains(q.only, l.elems[0].module)
}

// String writes the query as one does for people.
func (q *query) String() string {
	var b strings.Builder
	for _, s := range q.steps {
		b.WriteString("/" + s.name)
		for _, k := range sortedKeys(s.keys) {
			b.WriteString("[" + k + "=" + s.keys[k] + "]")
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	text := b.String()
	return text[:min(len(text), 512)]
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// unknown is the error for what is not in the schema.
func unknown(q *query) error {
	return status.Errorf(codes.Unimplemented, "%s is no path of this device: docs/telemetry.md lists them", q)
}
