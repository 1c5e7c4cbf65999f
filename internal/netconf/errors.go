package netconf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone/tree"
)

// rpcError is one rpc-error (RFC 6241 section 4.3 and appendix A).
type rpcError struct {
	typ     string // error-type; empty: application
	tag     string
	app     string // error-app-tag; empty: none
	path    string // XPath with the prefix inof; empty: none
	message string
	info    []*element
}

func (e *rpcError) Error() string { return e.tag + ": " + e.message }

// Error tags (RFC 6241 appendix A) beside those of package tree.
const (
	tagInUse            = "in-use"
	tagTooBig           = "too-big"
	tagMissingAttribute = "missing-attribute"
	tagBadAttribute     = "bad-attribute"
	tagUnknownNamespace = "unknown-namespace"
	tagAccessDenied     = "access-denied"
	tagLockDenied       = "lock-denied"
	tagFailed           = "operation-failed"
	tagMalformed        = "malformed-message"
)

// refusef makes an error of an operation.
func refusef(tag, format string, args ...any) *rpcError {
	return &rpcError{typ: "protocol", tag: tag, message: fmt.Sprintf(format, args...)}
}

// about says which element an error is about (bad-element).
func (e *rpcError) about(name string) *rpcError {
	e.info = append(e.info, leafOf(nsBase, "bad-element", name))
	return e
}

// several are errors of one operation.
type several []*rpcError

func (s several) Error() string { return s[0].Error() }

// mostErrors bounds the errors of one reply.
const mostErrors = 50

// codes ties what the device refuses to tags of NETCONF.
var codes = []struct {
	err      error
	tag, app string
}{
	{api.ErrInvalid, string(tree.TagInvalidValue), ""},
	{api.ErrConflict, tagFailed, "conflict"},
	{api.ErrRefused, tagFailed, "refused"},
	{api.ErrNotFound, string(tree.TagDataMissing), ""},
	{api.ErrExists, string(tree.TagDataExists), ""},
	{api.ErrLimit, string(tree.TagResourceDenied), ""},
	{api.ErrUnavailable, string(tree.TagResourceDenied), ""},
}

// describe turns any error into what is told.
func describe(err error) []*rpcError {
	var list several
	var one *rpcError
	var edit *tree.Error
	switch {
	case errors.As(err, &list):
		return list[:min(len(list), mostErrors)]
	case errors.As(err, &one):
		return several{one}
	case errors.As(err, &edit):
		return several{editError(edit)}
	}
	e := rpcError{tag: tagFailed}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			e.tag, e.app = c.tag, c.app
			break
		}
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if len(list) == mostErrors {
			break
		}
		e := e
		e.message = line
		list = append(list, &e)
	}
	return list
}

// editError is what package tree says of an edit.
func editError(e *tree.Error) *rpcError {
	out := &rpcError{tag: string(e.Tag), app: e.App, path: e.Path.XPath(prefix), message: e.Error()}
	if e.Element != "" {
		out.about(e.Element)
	}
	return out
}

// prefix is that of the module in error-path.
const prefix = "inof"

// element writes the error down.
func (e *rpcError) element() *element {
	typ := e.typ
	if typ == "" {
		typ = "application"
	}
	out := el(nsBase, "rpc-error", leafOf(nsBase, "error-type", typ), leafOf(nsBase, "error-tag", e.tag), leafOf(nsBase, "error-severity", "error"))
	if e.app != "" {
		out.kids = append(out.kids, leafOf(nsBase, "error-app-tag", e.app))
	}
	if e.path != "" {
		p := leafOf(nsBase, "error-path", e.path)
		p.attrs = []xml.Attr{{Name: xml.Name{Space: "xmlns", Local: prefix}, Value: tree.Namespace}}
		out.kids = append(out.kids, p)
	}
	m := leafOf(nsBase, "error-message", e.message)
	m.attrs = []xml.Attr{{Name: xml.Name{Space: "xml", Local: "lang"}, Value: "en"}}
	out.kids = append(out.kids, m)
	if len(e.info) > 0 {
		out.kids = append(out.kids, el(nsBase, "error-info", e.info...))
	}
	return out
}
