package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// bang is an entry of a list that YAML takes for a tag.
var bang = regexp.MustCompile(`[\[,-]\s*!`)

// document decodes the one YAML document of data; nil when it is empty or broken.
func (p *parser) document(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			p.syntax(err, data)
		}
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		p.add(Problem{File: p.file, Line: second.Line, Column: max(second.Column, 1),
			What: "a second YAML document begins", Allowed: "one document per file"})
	case !errors.Is(err, io.EOF):
		p.syntax(err, data)
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0]
	}
	return nil
}

// syntax reports what the YAML decoder said, with the text of the line it is about and
// what to do where the mistake is a common one.
func (p *parser) syntax(err error, data []byte) {
	msg := err.Error()
	pr := Problem{File: p.file, Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			pr.Line = n
		}
	}
	pr.What = "not valid YAML: " + msg
	lines := strings.Split(string(data), "\n")
	switch {
	case jsonProblem(&pr, data):
	case tabProblem(&pr, lines):
	case pr.Line <= len(lines):
		text := strings.TrimRight(lines[pr.Line-1], " \t\r")
		pr.Value = strings.TrimLeft(text, " ")
		pr.Column = 1 + len(text) - len(pr.Value)
		if bang.MatchString(pr.Value) {
			pr.What += "; an entry that begins with ! stands in quotes"
		}
		pr.What += "; look at this line and those beside it: each key has a colon and a space behind it, keys of one section stand in one column, quotes and brackets are closed"
	}
	p.add(pr)
}

// tabProblem finds the tab that a line is indented with, in the line the decoder names or
// the next, where it notices.
func tabProblem(pr *Problem, lines []string) bool {
	for n := max(1, pr.Line-1); n <= min(pr.Line+1, len(lines)); n++ {
		text := lines[n-1]
		blank := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		i := strings.IndexByte(blank, '\t')
		if i < 0 || strings.TrimSpace(text) == "" {
			continue
		}
		pr.Line, pr.Column = n, i+1
		pr.Value = strings.TrimSpace(text)
		pr.What = "the line is indented with a tab, and YAML takes spaces only; put two spaces in the place of each tab"
		return true
	}
	return false
}

// around is how much text on each side of a mistake is shown, in bytes.
const around = 20

// jsonProblem finds the mistake in a file that is written as JSON, possibly in one line.
func jsonProblem(pr *Problem, data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	if rest, ok := bytes.CutPrefix(text, []byte("{")); !ok || !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"`)) {
		return false
	}
	var v any
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, &v); !errors.As(err, &syntax) {
		return false
	}
	at := max(0, int(syntax.Offset)-1)
	line := bytes.Count(data[:at], []byte("\n"))
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	pr.Line, pr.Column = line+1, at-start+1
	end := len(data)
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		end = at + i
	}
	pr.Value = strings.ToValidUTF8(string(data[max(start, at-around):min(end, at+around)]), "")
	pr.What = fmt.Sprintf("not valid JSON at column %d: %v; look for a comma or bracket too many or missing just before it", pr.Column, syntax)
	return true
}
