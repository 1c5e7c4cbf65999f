package scenario

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Setting is a key of a scenario file and the value that it gets instead of the file's. The key
// is its path, "switch.ecn.low"; in a list the number of an entry, or its name: "traffic.in.bytes".
type Setting struct {
	Key, Value string
}

// Variant is a scenario file with some keys set otherwise.
type Variant struct {
	Name string
	Path string
	Set  []Setting
}

// load reads the file anew with its settings.
func (v Variant) load() (*File, error) {
	data, err := os.ReadFile(v.Path)
	if err != nil {
		return nil, err
	}
	return ParseWith(v.Path, data, v.Set)
}

// ParseWith is Parse with some keys set otherwise.
func ParseWith(name string, data []byte, set []Setting) (*File, error) {
	if len(set) == 0 {
		return Parse(name, data)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) != 1 {
		return Parse(name, data) // which tells what is wrong
	}
	for _, s := range set {
		var value yaml.Node
		if err := yaml.Unmarshal([]byte(s.Value), &value); err != nil || len(value.Content) != 1 {
			return nil, fmt.Errorf("%s=%s: the value is no YAML", s.Key, s.Value)
		}
		if err := replace(doc.Content[0], strings.Split(s.Key, "."), value.Content[0]); err != nil {
			return nil, fmt.Errorf("%s=%s: %w", s.Key, s.Value, err)
		}
	}
	return parse(name, func(d *decoder, f *File) { d.root(&doc, f) })
}

// replace puts a value where a path leads, and makes the mappings on the way.
func replace(n *yaml.Node, path []string, value *yaml.Node) error {
	at := func(node *yaml.Node) error {
		if len(path) > 1 {
			return replace(node, path[1:], value)
		}
		line := node.Line
		*node = *value
		node.Line = line
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == path[0] {
				return at(n.Content[i+1])
			}
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[0], Line: n.Line}
		child := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line}
		n.Content = append(n.Content, key, child)
		return at(child)
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(n.Content) {
			return at(n.Content[i])
		}
		for _, item := range n.Content {
			for i := 0; i+1 < len(item.Content); i += 2 {
				if k := item.Content[i].Value; (k == "name" || k == "kind") && item.Content[i+1].Value == path[0] {
					return at(item)
				}
			}
		}
		return fmt.Errorf("the list has no entry %q: want its number, or its name", path[0])
	case yaml.ScalarNode: // a mechanism by its name alone
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: "kind", Line: n.Line},
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.Value, Line: n.Line}}}
		return replace(n, path, value)
	}
	return fmt.Errorf("%q is in nothing that has keys", path[0])
}

// Study is what a number of variants gave, each with a number of seeds.
type Study struct {
	Variants []Outcome `json:"variants"`
	Seeds    int       `json:"seeds"`
}

// Outcome is that of one variant.
type Outcome struct {
	Name    string            `json:"name"`
	Metrics map[string]Spread `json:"metrics"`
	Failed  int               `json:"failed_expectations"` // runs that were not as the file expects
	First   *Result           `json:"-"`                   // of the first seed
}

// Spread is a metric over the seeds: its median, and where 95 of 100 runs lie (of few runs, all).
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Runs   int     `json:"runs"` // that have it
}

// RunStudy runs all variants with seeds counted from each file's own, as many at a time as there
// are workers; progress (may be nil) is told of each that has ended. The first error ends it.
func RunStudy(ctx context.Context, variants []Variant, seeds, workers int, progress func(done, all int)) (*Study, error) {
	results := make([][]*Result, len(variants))
	files := make([]*File, 0, len(variants)*seeds)
	for i, v := range variants {
		results[i] = make([]*Result, seeds)
		for k := range seeds {
			f, err := v.load()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
			f.Seed += uint64(k)
			f.Cores = 1
			files = append(files, f)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	var telling sync.Mutex
	done := 0
	did := func() {
		telling.Lock()
		defer telling.Unlock()
		if done++; progress != nil {
			progress(done, len(files))
		}
	}
	for range max(1, min(workers, len(files))) {
		wg.Go(func() {
			for n := range next {
				r, err := files[n].Run(ctx, nil)
				if err != nil {
					cancel(fmt.Errorf("%s: %w", variants[n/seeds].Name, err))
					continue
				}
				results[n/seeds][n%seeds] = r
				did()
			}
		})
	}
	for n := range files {
		if ctx.Err() == nil {
			next <- n
		}
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st := &Study{Seeds: seeds}
	for i, v := range variants {
		st.Variants = append(st.Variants, outcome(v.Name, results[i]))
	}
	return st, nil
}

func outcome(name string, runs []*Result) Outcome {
	o := Outcome{Name: name, Metrics: map[string]Spread{}, First: runs[0]}
	values := map[string][]float64{}
	for _, r := range runs {
		if r.Check() != nil {
			o.Failed++
		}
		for k, v := range r.Metrics {
			values[k] = append(values[k], v)
		}
	}
	for k, v := range values {
		slices.Sort(v)
		cut := len(v) / 40 // 2.5 of 100 at either end
		o.Metrics[k] = Spread{Median: median(v), Low: v[cut], High: v[len(v)-1-cut], Runs: len(v)}
	}
	return o
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Product gives all combinations of the values of keys, each "key=value,value"; commas within
// brackets do not part values.
func Product(path string, keys []string) ([]Variant, error) {
	out := []Variant{{Path: path}}
	for _, k := range keys {
		key, list, ok := strings.Cut(k, "=")
		values := splitValues(list)
		if !ok || key == "" || len(values) == 0 {
			return nil, fmt.Errorf("%q: want key=value,value", k)
		}
		var more []Variant
		for _, v := range out {
			for _, x := range values {
				name := strings.TrimPrefix(v.Name+" "+key[strings.LastIndex(key, ".")+1:]+"="+x, " ")
				more = append(more, Variant{Name: name, Path: path, Set: append(slices.Clone(v.Set), Setting{key, x})})
			}
		}
		out = more
	}
	if len(out) > maxVariants {
		return nil, fmt.Errorf("%d combinations, at most %d", len(out), maxVariants)
	}
	return out, nil
}

const maxVariants = 1000

func splitValues(list string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, list[from:i]), i+1
			}
		}
	}
	out = append(out, list[from:])
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}
