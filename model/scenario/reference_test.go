package scenario

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"

	"github.com/openinof/inof/model"
)

//go:embed spec.go
var specSource string

//go:embed control.go
var controlSource string

// comments gives what stands beside the fields of the declarations, by "Type.Field".
func comments() map[string]string {
	out := map[string]string{}
	for _, source := range []string{specSource, controlSource} {
		f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
		if err != nil {
			continue // it would not have compiled
		}
		ast.Inspect(f, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := t.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					for _, name := range field.Names {
						text := strings.TrimSpace(field.Comment.Text())
						if text == "" {
							text = strings.TrimSpace(field.Doc.Text())
						}
						out[t.Name.Name+"."+name.Name] = strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "|", "or")
					}
				}
			}
			return false
		})
	}
	return out
}

// reference is one run of Reference.
type reference struct {
	strings.Builder
	beside map[string]string
	seen   map[reflect.Type]string // the path where a struct is listed
}

// Reference writes every key of a scenario and every mechanism with its keys as Markdown, from
// the declarations that the decoder reads by.
func Reference() string {
	b := &reference{beside: comments(), seen: map[reflect.Type]string{}}
	b.WriteString(`# Keys of a scenario

Written by ` + "`go test ./model/scenario -run Reference -update-reference`" + ` from the
declarations in ` + "`model/scenario/spec.go`" + ` and the registry of mechanisms; do not edit.
[model.md](model.md) tells how to use them. A time is written "5us", a rate "100G", a size "64KiB";
a list of one needs no brackets. A key of a mechanism takes its name, or a mapping with ` + "`kind`" + `
and what is listed below.

## The file

| key | value |
| --- | --- |
`)
	file := reflect.TypeFor[File]()
	for i := range file.NumField() { // what stands at the top is listed there
		if t := file.Field(i); keyOf(t) != "" && element(t.Type).Kind() == reflect.Struct {
			b.seen[element(t.Type)] = keyOf(t)
		}
	}
	b.keys("", file)
	for _, p := range model.Parts {
		fmt.Fprintf(b, "\n## `%s`: %s\n", p.Part, p.About)
		for _, m := range model.Mechanisms(p.Part) {
			text := sentence(m.About) + "."
			for i, s := range m.Sets {
				text += [...]string{" Sets of values: ", "; "}[min(i, 1)] + "`" + s.Name + "`, " + s.About
			}
			if len(m.Sets) > 0 {
				text += "."
			}
			fmt.Fprintf(b, "\n### %s\n\n%s\n", m.Kind, wrap(text))
			keys := model.Keys(m.New())
			if len(keys) == 0 {
				continue
			}
			b.WriteString("\n| key | default | value |\n| --- | --- | --- |\n")
			for _, k := range keys {
				fmt.Fprintf(b, "| `%s` | %s | %s (%s) |\n", k.Name, k.Default, k.About, k.Type)
			}
		}
	}
	return b.String()
}

// wrap breaks prose into lines of at most 100 bytes.
func wrap(text string) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && n+1+len(word) > 100:
			b.WriteByte('\n')
			n = 0
		case i > 0:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// element gives what a pointer leads to or a list holds.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// keys lists the keys of a struct, those of structs within with their path.
func (b *reference) keys(path string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := keyOf(f)
		if key == "" {
			continue
		}
		at := strings.TrimPrefix(path+"."+key, ".")
		inner, list := element(f.Type), ""
		if f.Type.Kind() == reflect.Slice {
			list = "list of "
		}
		about := b.beside[t.Name()+"."+f.Name]
		if about != "" {
			about = ": " + about
		}
		where, listed := b.seen[inner]
		switch {
		case f.Tag.Get("part") != "":
			fmt.Fprintf(b, "| `%s` | %sa mechanism of `%s`%s |\n", at, list, f.Tag.Get("part"), about)
		case inner.Kind() == reflect.Struct && listed && where != at:
			if list != "" {
				list = "list, each "
			}
			fmt.Fprintf(b, "| `%s` | %sas `%s`%s |\n", at, list, where, about)
		case inner.Kind() == reflect.Struct:
			b.seen[inner] = at
			if list != "" {
				at += "[]"
			}
			b.keys(at, inner)
		default:
			fmt.Fprintf(b, "| `%s` | %s%s%s |\n", at, list, model.TypeName(inner), about)
		}
	}
}
