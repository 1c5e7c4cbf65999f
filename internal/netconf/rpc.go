package netconf

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone/tree"
)

// call is one operation that is being done.
type call struct {
	*session
	op        *element
	followers *sync.WaitGroup
	after     func() // once the reply is sent; nil: nothing
}

// operation is what an rpc can ask for.
type operation struct {
	role    api.Role
	changes bool // it is kept what became of it
	do      func(*call, context.Context) ([]*element, error)
}

type name struct{ space, name string }

// operations are all there are.
var operations = map[name]operation{
	{nsBase, "get"}:                         {api.Viewer, false, (*call).get},
	{nsBase, "get-config"}:                  {api.Viewer, false, (*call).getConfig},
	{nsBase, "edit-config"}:                 {api.Operator, false, (*call).editConfig},
	{nsBase, "copy-config"}:                 {api.Operator, false, (*call).copyConfig},
	{nsBase, "discard-changes"}:             {api.Operator, false, (*call).discardChanges},
	{nsBase, "lock"}:                        {api.Operator, false, (*call).lock},
	{nsBase, "unlock"}:                      {api.Operator, false, (*call).unlock},
	{nsBase, "validate"}:                    {api.Viewer, false, (*call).validate},
	{nsBase, "commit"}:                      {api.Operator, true, (*call).commit},
	{nsBase, "cancel-commit"}:               {api.Operator, true, (*call).cancelCommit},
	{nsBase, "close-session"}:               {api.Viewer, false, (*call).closeSession},
	{nsBase, "kill-session"}:                {api.Operator, true, (*call).killSession},
	{nsMonitoring, "get-schema"}:            {api.Viewer, false, (*call).getSchema},
	{nsNotification, "create-subscription"}: {api.Viewer, false, (*call).createSubscription},
	{nsOperations, "check"}:                 {api.Viewer, false, (*call).check},
	{nsOperations, "port"}:                  {api.Operator, true, (*call).port},
}

// notHere are operations of RFC 6241 whose capabilities this server does not have.
var notHere = map[name]string{
	{nsBase, "delete-config"}: "there is no datastore that can be deleted",
}

// do finds the operation and has it done.
func (s *session) do(ctx context.Context, rpc *element, followers *sync.WaitGroup) (kids []*element, after func(), err error) {
	if len(rpc.kids) != 1 {
		return nil, nil, &rpcError{typ: "rpc", tag: tagMalformed, message: fmt.Sprintf("%d operations in one rpc", len(rpc.kids))}
	}
	op := rpc.kids[0]
	known, ok := operations[name{op.space, op.name}]
	if !ok {
		text, ours := notHere[name{op.space, op.name}]
		if !ours {
			text = fmt.Sprintf("there is no operation %.100q of %.100q", op.name, op.space)
		}
		return nil, nil, refusef(string(tree.TagNotSupported), "%s", text).about(op.name)
	}
	c := &call{session: s, op: op, followers: followers}
	if err := s.srv.cfg.Door.Pass(s.who, known.role, op.name); err != nil {
		return nil, nil, errors.Join(err, refusef(tagAccessDenied, "%v", err))
	}
	do := func(ctx context.Context) error {
		kids, err = known.do(c, ctx)
		return err
	}
	if known.changes {
		err = api.Do(ctx, s.srv.dev, "NETCONF session "+s.idText(), op.name, bodyOf(op), do)
	} else {
		err = do(ctx)
	}
	return kids, c.after, err
}

// large are the parts of /inof that are only read where somebody asks for them.
var large = []string{"zones", "hosts"}

func (c *call) get(ctx context.Context) ([]*element, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	var trees []*element
	if wants(f, tree.Namespace, "inof") {
		end, err := c.srv.beginLarge(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		inof, err := c.inof(ctx, f)
		if err != nil {
			return nil, err
		}
		trees = append(trees, inof)
	}
	trees = append(trees, library(), oldLibrary(), c.srv.monitoring(), streams(c.srv.started))
	return []*element{el(nsBase, "data", selected(trees, f)...)}, nil
}

// inof reads what a filter wants of /inof.
func (c *call) inof(ctx context.Context, f *element) (*element, error) {
	var all telemetry.Tree
	read := func(path string, keep func(rest string) bool) error {
		t, err := c.srv.dev.Telemetry(ctx, path)
		for i := range t {
			if rest, ok := strings.CutPrefix(t[i].Leaf.Path, "/inof/"); ok && keep(rest) {
				all = append(all, t[i])
			}
		}
		return err
	}
	part := func(rest string) string {
		first, _ := cutStep(rest)
		return first
	}
	isLarge := func(rest string) bool {
		for _, l := range large {
			if part(rest) == l {
				return true
			}
		}
		return false
	}
	if err := read("/inof", func(rest string) bool {
		return !isLarge(rest) && wants(f, tree.Namespace, "inof", part(rest))
	}); err != nil {
		return nil, err
	}
	for _, l := range large {
		if !wants(f, tree.Namespace, "inof", l) {
			continue
		}
		if err := read("/inof/"+l, func(rest string) bool { return part(rest) == l }); err != nil {
			return nil, err
		}
	}
	return known(all)
}

func (c *call) getConfig(ctx context.Context) ([]*element, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	store, config, err := c.datastore("source")
	if err != nil {
		return nil, err
	}
	if config != nil {
		return nil, refusef(string(tree.TagInvalidValue), "get-config reads a datastore").about("config")
	}
	have, err := c.srv.store.read(ctx, store)
	if err != nil {
		return nil, err
	}
	return []*element{el(nsBase, "data", selected(configuration(have), f)...)}, nil
}

func (c *call) editConfig(ctx context.Context) ([]*element, error) {
	end, err := c.srv.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.target(); err != nil {
		return nil, err
	}
	def, err := c.word("default-operation", "merge", "replace", "none")
	if err != nil {
		return nil, err
	}
	test, err := c.word("test-option", "test-then-set", "set", "test-only")
	if err != nil {
		return nil, err
	}
	onError, err := c.word("error-option", "stop-on-error", "continue-on-error", "rollback-on-error")
	if err != nil {
		return nil, err
	}
	if onError == "continue-on-error" {
		return nil, refusef(string(tree.TagNotSupported), "an edit is done as a whole or not at all: stop-on-error and rollback-on-error").about("error-option")
	}
	config, err := c.needs("config")
	if err != nil {
		return nil, err
	}
	n, err := editOf(config)
	if err != nil {
		return nil, err
	}
	return nil, c.srv.store.edit(ctx, n, tree.Op(def), test == "test-only")
}

func (c *call) copyConfig(ctx context.Context) ([]*element, error) {
	end, err := c.srv.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.target(); err != nil {
		return nil, err
	}
	store, config, err := c.datastore("source")
	switch {
	case err != nil:
		return nil, err
	case store == candidate:
		return nil, refusef(string(tree.TagInvalidValue), "source and target are the same").about("source")
	case store == running:
		c.srv.store.discard()
		return nil, nil
	}
	n, err := editOf(config)
	if err != nil {
		return nil, err
	}
	return nil, c.srv.store.edit(ctx, n, tree.Replace, false)
}

func (c *call) discardChanges(ctx context.Context) ([]*element, error) {
	end, err := c.srv.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.srv.store.mayChange(c.id, candidate); err != nil {
		return nil, err
	}
	c.srv.store.discard()
	return nil, nil
}

func (c *call) lock(ctx context.Context) ([]*element, error) {
	store, _, err := c.datastore("target")
	if err != nil {
		return nil, err
	}
	if _, v, err := c.srv.store.running(ctx); err == nil && v.Confirm == nil {
		c.srv.store.waits(0, 0) // it was settled in another way
	}
	return nil, c.srv.store.lock(c.id, store, time.Now())
}

func (c *call) unlock(context.Context) ([]*element, error) {
	store, _, err := c.datastore("target")
	if err != nil {
		return nil, err
	}
	return nil, c.srv.store.unlock(c.id, store)
}

func (c *call) validate(ctx context.Context) ([]*element, error) {
	d, err := c.source(ctx)
	if err != nil {
		return nil, err
	}
	return nil, c.srv.store.check(ctx, d)
}

// defaultConfirm is that of RFC 6241 section 8.4.1.
const defaultConfirm = 600 * time.Second

func (c *call) order() (o order, err error) {
	invalid := func(name, text string) error {
		return refusef(string(tree.TagInvalidValue), "%s", text).about(name)
	}
	if p := c.param("persist-id"); p != nil {
		o.persistID = p.value()
	}
	o.force = c.op.child(nsCommitOptions, "force") != nil
	persist, wait := c.param("persist"), c.param("confirm-timeout")
	if c.param("confirmed") == nil {
		if persist != nil || wait != nil {
			return o, refusef(string(tree.TagMissingElement), "persist and confirm-timeout are of a confirmed commit").about("confirmed")
		}
		return o, nil
	}
	o.confirm = defaultConfirm
	if wait != nil {
		n, err := strconv.ParseUint(wait.value(), 10, 32)
		o.confirm = time.Duration(n) * time.Second
		if err != nil || o.confirm < api.MinConfirm || o.confirm > api.MaxConfirm {
			return o, invalid("confirm-timeout", fmt.Sprintf("confirm-timeout %.20q: want %d to %d seconds", wait.value(), api.MinConfirm/time.Second, api.MaxConfirm/time.Second))
		}
	}
	if persist != nil {
		if o.persist = persist.value(); o.persist == "" || len(o.persist) > maxPersist {
			return o, invalid("persist", fmt.Sprintf("persist has %d bytes, want 1 to %d", len(o.persist), maxPersist))
		}
	}
	return o, nil
}

// maxPersist bounds a persist-id, in bytes.
const maxPersist = 200

func (c *call) commit(ctx context.Context) ([]*element, error) {
	o, err := c.order()
	if err != nil {
		return nil, err
	}
	end, err := c.srv.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, name := range []string{candidate, running} {
		if err := c.srv.store.mayChange(c.id, name); err != nil {
			return nil, err
		}
	}
	return nil, c.srv.store.commit(ctx, c.id, o)
}

func (c *call) cancelCommit(ctx context.Context) ([]*element, error) {
	end, err := c.srv.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	id := ""
	if p := c.param("persist-id"); p != nil {
		id = p.value()
	}
	return nil, c.srv.store.cancel(ctx, c.id, id)
}

func (c *call) closeSession(context.Context) ([]*element, error) {
	c.closing = true
	return nil, nil
}

func (c *call) killSession(context.Context) ([]*element, error) {
	p, err := c.needs("session-id")
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(p.value(), 10, 32)
	if err != nil || uint32(n) == c.id || !c.srv.kill(uint32(n)) {
		return nil, refusef(string(tree.TagInvalidValue), "session %.20q: there is no other one of that number", p.value()).about("session-id")
	}
	return nil, nil
}

// check says what is wrong with the candidate, and what hosts would be told of it.
func (c *call) check(ctx context.Context) ([]*element, error) {
	d, err := c.srv.store.candidate(ctx)
	if err != nil {
		return nil, err
	}
	r, err := c.srv.dev.CheckZones(ctx, api.ZoneCandidate{Plan: d.config.Plan, Base: d.base})
	if err != nil {
		return nil, err
	}
	var out []*element
	say := func(name, text string) {
		if text != "" {
			out = append(out, leafOf(nsOperations, name, text))
		}
	}
	say("conflict", r.Conflict)
	for _, l := range []struct {
		name  string
		texts []string
	}{{"error", r.Errors}, {"warning", r.Warnings}, {"change", r.Changes}} {
		seen := map[string]bool{} // a leaf-list has a value once
		for _, text := range l.texts {
			if !seen[text] {
				say(l.name, text)
			}
			seen[text] = true
		}
	}
	if x := r.Impact; x != nil {
		for _, n := range []struct {
			name string
			n    int
		}{{"pairs-before", x.PairsBefore}, {"pairs-gained", x.PairsGained}, {"pairs-lost", x.PairsLost}, {"lost-active", x.LostActive}, {"cut-off", x.CutOff}, {"notices", x.Active + x.Inactive}} {
			say(n.name, strconv.Itoa(n.n))
		}
	}
	say("loss", r.Loss)
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

func (c *call) port(ctx context.Context) ([]*element, error) {
	p, err := c.needs("name")
	if err != nil {
		return nil, err
	}
	if _, err := c.needs("action"); err != nil {
		return nil, err
	}
	action, err := c.word("action", "shut", "recover", "drain", "undrain")
	if err != nil {
		return nil, err
	}
	switch port := p.value(); action {
	case "shut":
		err = c.srv.dev.ShutPort(ctx, port)
	case "recover":
		err = c.srv.dev.RecoverPort(ctx, port)
	default:
		_, err = c.srv.dev.Drain(ctx, api.DrainOrder{Port: port, Undo: action == "undrain"})
	}
	return nil, err
}
