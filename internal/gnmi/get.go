package gnmi

import (
	"context"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/telemetry"
)

// maxPaths bounds the paths of a Get.
const maxPaths = 128

// Get implements gNMI: a Notification for each path, with a value in JSON for each node that the
// path names, or with all leaves in protobuf.
func (s *Server) Get(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, error) {
	s.counts.gets.Add(1)
	out, err := s.get(ctx, req)
	if err != nil {
		return nil, s.refuse(err)
	}
	return out, nil
}

func (s *Server) get(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, error) {
	if err := checkEncoding(req.GetEncoding()); err != nil {
		return nil, err
	}
	depth, err := depthOf(req.GetExtension())
	if err != nil {
		return nil, err
	}
	paths := req.GetPath()
	switch {
	case len(paths) == 0 && len(req.GetPrefix().GetElem()) > 0:
		paths = []*pb.Path{{}} // the prefix alone
	case len(paths) == 0:
		return nil, status.Error(codes.InvalidArgument, "a GetRequest without a path")
	case len(paths) > maxPaths:
		return nil, status.Errorf(codes.ResourceExhausted, "%d paths: at most %d are taken", len(paths), maxPaths)
	}
	var queries []*query
	var found [][]asked
	need := telemetry.Need(0)
	for _, p := range paths {
		q, err := parse(req.GetPrefix(), p)
		if err == nil {
			err = q.models(req.GetUseModels())
		}
		if err != nil {
			return nil, err
		}
		leaves := theSchema.find(q)
		if len(leaves) == 0 {
			return nil, unknown(q)
		}
		for _, a := range leaves {
			if a.ofType(req.GetType()) {
				need |= a.Needs
			}
		}
		queries, found = append(queries, q), append(found, leaves)
	}
	select {
	case s.gets <- struct{}{}:
		defer func() { <-s.gets }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	snapshot, err := s.src.Snapshot(ctx, need, time.Time{})
	if err != nil {
		return nil, unavailable(err)
	}
	tree := telemetry.Read(snapshot)
	out := &pb.GetResponse{}
	for i, q := range queries {
		n, there := answer(tree, q, found[i], req, depth)
		if !there {
			return nil, status.Errorf(codes.NotFound, "%s is not there", q)
		}
		if q.origin != "" || req.GetPrefix().GetTarget() != "" {
			n.Prefix = &pb.Path{Origin: q.origin, Target: req.GetPrefix().GetTarget()}
		}
		out.Notification = append(out.Notification, n)
	}
	return out, nil
}

// ofType filters as GetRequest.type asks.
func (l *leafNode) ofType(t pb.GetRequest_DataType) bool {
	switch t {
	case pb.GetRequest_CONFIG:
		return l.Set
	case pb.GetRequest_STATE:
		return !l.Set
	case pb.GetRequest_OPERATIONAL: // what says nothing of a configuration
		return !l.Set && l.Class != telemetry.Config
	}
	return true
}

// answer gives what is at one path; it is as old as the oldest value of it.
func answer(tree telemetry.Tree, q *query, leaves []asked, req *pb.GetRequest, most int) (n *pb.Notification, there bool) {
	n = &pb.Notification{}
	of := map[*telemetry.Leaf]*asked{}
	for i := range leaves {
		of[leaves[i].Leaf] = &leaves[i]
	}
	ietf := req.GetEncoding() == pb.Encoding_JSON_IETF
	var order []string
	nodes := map[string]*object{}
	at := map[string]*pb.Path{}
	plain := map[string]*pb.Update{} // leaves
	var oldest time.Time
	for i := range tree {
		v := &tree[i]
		a := of[v.Leaf]
		if a == nil {
			continue
		}
		depth, ok := a.covers(v.Keys)
		if !ok {
			continue
		}
		there = true
		if !a.ofType(req.GetType()) || most > 0 && len(a.elems)-depth > most {
			continue
		}
		if oldest.IsZero() || v.At.Before(oldest) {
			oldest = v.At
		}
		if req.GetEncoding() == pb.Encoding_PROTO {
			n.Update = append(n.Update, &pb.Update{Path: &pb.Path{Elem: a.path(v.Keys, len(a.elems))}, Val: protoValue(v)})
			continue
		}
		place := a.place(v.Keys, depth)
		if depth == len(a.elems) {
			if plain[place] == nil {
				plain[place] = &pb.Update{Path: &pb.Path{Elem: a.path(v.Keys, depth)}, Val: typed(v, req.GetEncoding())}
				order = append(order, place)
			}
			continue
		}
		o := nodes[place]
		if o == nil {
			o = newObject()
			nodes[place], at[place], order = o, &pb.Path{Elem: a.path(v.Keys, depth)}, append(order, place)
			if depth > 0 { // an entry of a list has its keys
				e := &a.elems[depth-1]
				for _, k := range e.keys {
					name := k
					if ietf {
						name = e.module + ":" + k
					}
					o.members[name] = keyJSON(e, k, at[place].Elem[depth-1].Key[k])
				}
			}
		}
		o.put(a.leafNode, v, depth, ietf)
	}
	for _, place := range order {
		if u := plain[place]; u != nil {
			n.Update = append(n.Update, u)
			continue
		}
		u := &pb.Update{Path: at[place], Val: &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: text(nodes[place].plain())}}}
		if ietf {
			u.Val = &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: u.Val.GetJsonVal()}}
		}
		n.Update = append(n.Update, u)
	}
	n.Timestamp = oldest.UnixNano()
	if oldest.IsZero() {
		n.Timestamp = 0
	}
	return n, there
}

// place tells nodes of a tree apart.
func (l *leafNode) place(keys []string, depth int) string {
	var b strings.Builder
	for _, e := range l.elems[:depth] {
		b.WriteString("/" + e.name)
		for range e.keys {
			b.WriteString("\x00" + keys[0])
			keys = keys[1:]
		}
	}
	return b.String()
}
