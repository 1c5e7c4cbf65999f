package testbed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// splitCommand splits an exec line into words as containerlab does: quotes and
// backslashes as in a shell, but no shell behind it, so no variables, pipes or
// redirections. At least one word.
func splitCommand(line string) ([]string, error) {
	words, err := splitCommandOrNone(line)
	if err == nil && len(words) == 0 {
		return nil, fmt.Errorf("empty command line")
	}
	return words, err
}

func splitCommandOrNone(line string) ([]string, error) {
	var words []string
	var cur strings.Builder
	inWord, escaped := false, false
	quote := rune(0)
	for _, r := range line {
		switch {
		case escaped:
			cur.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				cur.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				words = append(words, cur.String())
				cur.Reset()
				inWord = false
			}
		default:
			cur.WriteRune(r)
			inWord = true
		}
	}
	if escaped || quote != 0 {
		return nil, fmt.Errorf("%q ends inside a quote or after a backslash", line)
	}
	if inWord {
		words = append(words, cur.String())
	}
	return words, nil
}

// substitute replaces ${NAME} by what vars says. Any other ${...} is an error, so
// that a misspelt name never ends up in a path; a lone $ stays.
func substitute(text string, vars map[string]string) (string, error) {
	var out strings.Builder
	for line := 1; ; {
		i := strings.Index(text, "${")
		if i < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		line += strings.Count(text[:i], "\n")
		out.WriteString(text[:i])
		name, rest, ok := strings.Cut(text[i+2:], "}")
		v, known := vars[name]
		if !ok || !known {
			if len(name) > 40 {
				name = name[:40] + "..."
			}
			return "", fmt.Errorf("line %d: ${%s} is not known here, want one of %s", line, name, varNames(vars))
		}
		out.WriteString(v)
		text = rest
	}
}

func varNames(vars map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(vars)), ", ")
}
