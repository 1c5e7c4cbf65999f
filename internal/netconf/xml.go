package netconf

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Namespaces.
const (
	nsBase          = "urn:ietf:params:xml:ns:netconf:base:1.0"
	nsNotification  = "urn:ietf:params:xml:ns:netconf:notification:1.0"
	nsManagement    = "urn:ietf:params:xml:ns:netmod:notification"
	nsMonitoring    = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"
	nsLibrary       = "urn:ietf:params:xml:ns:yang:ietf-yang-library"
	nsDatastores    = "urn:ietf:params:xml:ns:yang:ietf-datastores"
	nsOperations    = "urn:openinof:yang:inof-operations"
	nsCommitOptions = "urn:openinof:yang:inof-netconf"
)

// Limits of a message.
const (
	MaxMessage  = 4 << 20 // bytes
	maxDepth    = 64      // elements around one
	maxElements = 1 << 18 // of one message
)

// element is an element of XML with its attributes. Text is that of one without elements below it.
type element struct {
	space, name string
	attrs       []xml.Attr
	text        string
	kids        []*element
	keys        int // how many of the first kids are the keys of a list entry
}

// el makes an element; a kid without a namespace has that of the one around it.
func el(space, name string, kids ...*element) *element {
	return &element{space: space, name: name, kids: kids}
}

// leafOf makes an element with a text.
func leafOf(space, name, text string) *element {
	return &element{space: space, name: name, text: text}
}

// child gives the first element below with a name.
func (e *element) child(space, name string) *element {
	for _, k := range e.kids {
		if k.space == space && k.name == name {
			return k
		}
	}
	return nil
}

// attr gives an attribute without a namespace.
func (e *element) attr(space, name string) (string, bool) {
	for _, a := range e.attrs {
		if a.Name.Space == space && a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// Errors of decode.
var (
	errDTD      = errors.New("a document type or an instruction: neither is taken")
	errTooDeep  = fmt.Errorf("more than %d elements around one", maxDepth)
	errTooMany  = fmt.Errorf("more than %d elements", maxElements)
	errTrailing = errors.New("something follows the message")
	errNothing  = errors.New("no element")
)

// decode reads one document. What it takes of memory is bounded by the length of the message
// and maxElements.
func decode(message []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(message))
	var root *element
	var stack []*element
	var text []byte // of the innermost element, in as many parts as there are comments
	count := 0
	for {
		t, err := d.Token()
		if err == io.EOF && root != nil && len(stack) == 0 {
			return root, nil
		}
		if err == io.EOF {
			return root, errNothing
		}
		if err != nil {
			return root, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{space: t.Name.Space, name: t.Name.Local, attrs: t.Attr}
			if count++; count > maxElements {
				return root, errTooMany
			}
			switch {
			case len(stack) > 0:
				up := stack[len(stack)-1]
				up.kids = append(up.kids, e)
			case root != nil:
				return root, errTrailing
			default:
				root = e
			}
			text = text[:0]
			if stack = append(stack, e); len(stack) > maxDepth {
				return root, errTooDeep
			}
		case xml.EndElement:
			if e := stack[len(stack)-1]; len(e.kids) == 0 {
				e.text = string(text)
			}
			text = text[:0]
			stack = stack[:len(stack)-1] // the decoder has seen that it fits
		case xml.CharData:
			switch {
			case len(stack) == 0 && len(bytes.TrimSpace(t)) > 0:
				return root, errTrailing
			case len(stack) > 0 && len(stack[len(stack)-1].kids) == 0:
				text = append(text, t...)
			}
		case xml.Directive:
			return root, errDTD
		case xml.ProcInst:
			if t.Target != "xml" || root != nil {
				return root, errDTD
			}
		}
	}
}

// value gives the text of a leaf without what an editor of XML may have put around it.
func (e *element) value() string { return strings.TrimSpace(e.text) }

// write puts an element down in the namespace that is in force around it.
func (e *element) write(w *bufio.Writer, around string) {
	space := e.space
	if space == "" {
		space = around
	}
	w.WriteByte('<')
	w.WriteString(e.name)
	if space != around {
		w.WriteString(` xmlns="`)
		escape(w, space)
		w.WriteByte('"')
	}
	for _, a := range e.attrs {
		name := a.Name.Local
		if a.Name.Space != "" {
			name = a.Name.Space + ":" + name
		}
		w.WriteByte(' ')
		w.WriteString(name)
		w.WriteString(`="`)
		escape(w, a.Value)
		w.WriteByte('"')
	}
	if e.text == "" && len(e.kids) == 0 {
		w.WriteString("/>")
		return
	}
	w.WriteByte('>')
	escape(w, e.text)
	for _, k := range e.kids {
		k.write(w, space)
	}
	w.WriteString("</")
	w.WriteString(e.name)
	w.WriteByte('>')
}

// escape writes a text; what XML has no character for becomes U+FFFD.
func escape(w io.Writer, text string) {
	_ = xml.EscapeText(w, []byte(text)) // an error is the writer's, which is asked at the end
}
