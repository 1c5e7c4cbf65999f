package gnmi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone/tree"
)

const (
	// maxOperations bounds what one Set does.
	maxOperations = 4096
	// rollback is after how long a commit of the Commit extension is taken back that says nothing
	// else and is not confirmed.
	rollback = 10 * time.Minute
	// commitComment stands before the ID of a commit in the comment of its version, where confirm
	// and cancel find it, also after a restart.
	commitComment = "gNMI commit "
	maxCommitID   = 128 // bytes
)

// Set implements gNMI, of what telemetry says may be set: all of it is one change of the zones,
// made as a whole or not at all.
func (s *Server) Set(ctx context.Context, req *pb.SetRequest) (out *pb.SetResponse, err error) {
	s.counts.sets.Add(1)
	from := "gNMI"
	if c, ok := api.CallerOf(ctx); ok {
		from = "gNMI from " + c.From
	}
	_ = api.Do(ctx, s.src, from, "gNMI Set", requestText(req), func(ctx context.Context) error {
		out, err = s.set(ctx, req)
		return kindOf(err)
	})
	if err != nil {
		return nil, s.refuse(statusOf(err))
	}
	return out, nil
}

// requestText is what is kept of a request for the audit.
func requestText(req *pb.SetRequest) string {
	var b strings.Builder
	line := func(op string, p *pb.Path, v *pb.TypedValue) {
		if q, err := parse(req.GetPrefix(), p); err == nil && b.Len() < 4096 {
			fmt.Fprintf(&b, "%s %s %.256s\n", op, q, jsonOf(v))
		}
	}
	for _, p := range req.GetDelete() {
		line("delete", p, nil)
	}
	for _, u := range req.GetReplace() {
		line("replace", u.GetPath(), u.GetVal())
	}
	for _, u := range req.GetUpdate() {
		line("update", u.GetPath(), u.GetVal())
	}
	for _, x := range req.GetExtension() {
		if c := x.GetCommit(); c != nil {
			fmt.Fprintf(&b, "commit %.128s %T\n", c.GetId(), c.GetAction())
		}
	}
	return b.String()
}

// operation is one part of a Set.
type operation struct {
	path *pb.Path
	op   tree.Op
	said pb.UpdateResult_Operation
	val  *pb.TypedValue
}

func (s *Server) set(ctx context.Context, req *pb.SetRequest) (*pb.SetResponse, error) {
	commit, err := commitOf(req.GetExtension())
	if err != nil {
		return nil, err
	}
	var ops []operation
	for _, p := range req.GetDelete() {
		ops = append(ops, operation{p, tree.Remove, pb.UpdateResult_DELETE, nil})
	}
	for _, u := range req.GetReplace() {
		ops = append(ops, operation{u.GetPath(), tree.Replace, pb.UpdateResult_REPLACE, u.GetVal()})
	}
	for _, u := range req.GetUpdate() {
		ops = append(ops, operation{u.GetPath(), tree.Merge, pb.UpdateResult_UPDATE, u.GetVal()})
	}
	switch {
	case len(req.GetUnionReplace()) > 0:
		return nil, status.Error(codes.Unimplemented, "union_replace is not spoken: use replace")
	case len(ops) > maxOperations:
		return nil, status.Errorf(codes.ResourceExhausted, "%d operations: at most %d are taken", len(ops), maxOperations)
	}
	z, err := s.src.Zoning(ctx)
	if err != nil {
		return nil, err
	}
	switch commit.GetAction().(type) {
	case *gnmi_ext.Commit_Confirm, *gnmi_ext.Commit_Cancel, *gnmi_ext.Commit_SetRollbackDuration:
		if len(ops) > 0 {
			return nil, status.Error(codes.InvalidArgument, "a Set that confirms or cancels a commit changes nothing else")
		}
		return s.settle(ctx, commit, &z)
	}
	if z.Version.Confirm != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "version %d by %s waits for its confirmation until %s: confirm or cancel it first", z.Version.Number, z.Version.By, z.Version.Confirm.UTC().Format(time.RFC3339))
	}
	confirm := time.Duration(0)
	comment := ""
	if c := commit.GetCommit(); commit != nil {
		if confirm = rollback; c.GetRollbackDuration() != nil {
			confirm = c.GetRollbackDuration().AsDuration()
		}
		if err := checkRollback(confirm); err != nil {
			return nil, err
		}
		comment = commitComment + commit.GetId()
	}
	out := &pb.SetResponse{Prefix: req.GetPrefix()}
	wanted := tree.Config{Plan: z.Plan}
	for i := range ops {
		o := &ops[i]
		if wanted, err = o.apply(req.GetPrefix(), wanted); err != nil {
			return nil, err
		}
		out.Response = append(out.Response, &pb.UpdateResult{Path: o.path, Op: o.said})
	}
	for _, e := range wanted.Check() {
		return nil, status.Error(codes.InvalidArgument, e.Error()) // the first
	}
	if len(ops) > 0 {
		if _, err := s.src.CommitZones(ctx, api.ZoneCandidate{Plan: wanted.Plan, Base: z.Version.Base, Confirm: api.Duration(confirm), Comment: comment}); err != nil {
			return nil, err
		}
	}
	out.Timestamp = s.now().UnixNano()
	return out, nil
}

// apply makes one edit.
func (o *operation) apply(prefix *pb.Path, c tree.Config) (tree.Config, error) {
	q, err := parse(prefix, o.path)
	if err != nil {
		return c, err
	}
	if len(theSchema.find(q)) == 0 {
		return c, unknown(q)
	}
	var path tree.Path
	for _, x := range q.steps {
		if x.name == "*" || x.name == "..." {
			return c, status.Errorf(codes.InvalidArgument, "%s: a path of Set has no wildcards", q)
		}
		step := tree.Step{Name: x.name}
		for _, k := range x.keys {
			if step.Key, step.Keyed = k, true; k == "*" {
				return c, status.Errorf(codes.InvalidArgument, "%s: a path of Set has no wildcards", q)
			}
		}
		path = append(path, step)
	}
	var value []byte
	if o.op != tree.Remove {
		if value = jsonOf(o.val); value == nil {
			return c, status.Errorf(codes.InvalidArgument, "%s: a value of that kind is not taken: use json_ietf_val, json_val, or the value of a leaf", q)
		}
	}
	n, err := tree.EditJSON(path, o.op, value)
	if err != nil {
		return c, err
	}
	return c.Apply(n, tree.Merge)
}

// jsonOf is a value in JSON; nil: it is of a kind that nothing here has.
func jsonOf(v *pb.TypedValue) []byte {
	switch x := v.GetValue().(type) {
	case *pb.TypedValue_JsonIetfVal:
		return x.JsonIetfVal
	case *pb.TypedValue_JsonVal:
		return x.JsonVal
	case *pb.TypedValue_LeaflistVal:
		list := []json.RawMessage{}
		for _, e := range x.LeaflistVal.GetElement() {
			j := jsonOf(e)
			if _, nested := e.GetValue().(*pb.TypedValue_LeaflistVal); j == nil || nested {
				return nil
			}
			list = append(list, j)
		}
		return text(list)
	case *pb.TypedValue_StringVal:
		return text(x.StringVal)
	case *pb.TypedValue_BoolVal:
		return text(x.BoolVal)
	case *pb.TypedValue_UintVal:
		return text(x.UintVal)
	case *pb.TypedValue_IntVal:
		return text(x.IntVal)
	}
	return nil
}

// commitOf reads the extensions of a Set; nil: there is no commit to be confirmed.
func commitOf(list []*gnmi_ext.Extension) (c *gnmi_ext.Commit, err error) {
	for _, x := range list {
		switch e := x.GetExt().(type) {
		case *gnmi_ext.Extension_Commit:
			c = e.Commit
			switch {
			case c.GetId() == "" || len(c.GetId()) > maxCommitID:
				return nil, status.Errorf(codes.InvalidArgument, "a commit has an id of 1..%d bytes", maxCommitID)
			case c.GetAction() == nil:
				return nil, status.Error(codes.InvalidArgument, "a commit has an action: commit, confirm or cancel")
			}
		case *gnmi_ext.Extension_MasterArbitration:
			return nil, status.Error(codes.Unimplemented, "master arbitration is not spoken: two writers at once are told apart by the version that they change")
		case *gnmi_ext.Extension_Depth, *gnmi_ext.Extension_History:
			return nil, status.Error(codes.InvalidArgument, "an extension of Get or Subscribe in a Set")
		}
	}
	return c, nil
}

func checkRollback(confirm time.Duration) error {
	if confirm < api.MinConfirm || confirm > api.MaxConfirm {
		return status.Errorf(codes.InvalidArgument, "rollback_duration of %v: allowed are %v..%v", confirm, api.MinConfirm, api.MaxConfirm)
	}
	return nil
}

// settle confirms a commit, takes it back, or gives it more time.
func (s *Server) settle(ctx context.Context, c *gnmi_ext.Commit, z *api.Zoning) (*pb.SetResponse, error) {
	last := &z.Version
	switch id, waits := strings.CutPrefix(last.Comment, commitComment); {
	case last.Confirm == nil:
		return nil, status.Errorf(codes.FailedPrecondition, "no commit waits: version %d is in force", last.Number)
	case !waits || id != c.GetId():
		return nil, status.Errorf(codes.FailedPrecondition, "version %d waits, but not as commit %.128q", last.Number, c.GetId())
	}
	if more, set := c.GetAction().(*gnmi_ext.Commit_SetRollbackDuration); set {
		confirm := more.SetRollbackDuration.GetRollbackDuration().AsDuration()
		if err := checkRollback(confirm); err != nil {
			return nil, err
		}
		if _, err := s.src.CommitZones(ctx, api.ZoneCandidate{Plan: z.Plan, Base: last.Base, Confirm: api.Duration(confirm), Extends: last.Number, Comment: last.Comment}); err != nil {
			return nil, err
		}
		return &pb.SetResponse{Timestamp: s.now().UnixNano()}, nil
	}
	_, stay := c.GetAction().(*gnmi_ext.Commit_Confirm)
	if _, err := s.src.SettleZones(ctx, last.Number, stay); err != nil {
		return nil, err
	}
	return &pb.SetResponse{Timestamp: s.now().UnixNano()}, nil
}

// kindOf gives an error of gNMI the kind that the audit knows.
func kindOf(err error) error {
	st, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	kind := api.ErrInvalid
	switch st.Code() {
	case codes.FailedPrecondition, codes.Unimplemented, codes.ResourceExhausted:
		kind = api.ErrRefused
	}
	return fmt.Errorf("%w: %s", kind, st.Message())
}

// statusOf gives an error its code.
func statusOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Internal
	var edit *tree.Error
	switch {
	case errors.As(err, &edit), errors.Is(err, api.ErrInvalid):
		code = codes.InvalidArgument
	case errors.Is(err, api.ErrConflict):
		code = codes.Aborted
	case errors.Is(err, api.ErrRefused):
		code = codes.FailedPrecondition
	case errors.Is(err, api.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, api.ErrExists):
		code = codes.AlreadyExists
	case errors.Is(err, api.ErrLimit):
		code = codes.ResourceExhausted
	case errors.Is(err, api.ErrUnavailable):
		code = codes.Unavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		code = status.FromContextError(err).Code()
	}
	return status.Error(code, err.Error())
}
