package gnmi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
)

// version is that of the specification of gNMI which is spoken.
const version = "0.10.0"

// Source is what the daemon tells and does.
type Source interface {
	// Snapshot gives what is known with the parts that are needed, not older than a second, nor
	// than after.
	Snapshot(ctx context.Context, need telemetry.Need, after time.Time) (*telemetry.Snapshot, error)
	// Quick is the last Snapshot with what was read since of that which has a Reader; it costs
	// little and does not wait.
	Quick(ctx context.Context) (*telemetry.Snapshot, error)
	// Hasten has what it reads read at a pace until end is called.
	Hasten(telemetry.Pace) (end func())
	Events(after uint64) api.EventBatch
	Subscribe(ctx context.Context, after uint64) (api.EventBatch, error)
	api.ZoningSource
}

// Server is one listener.
type Server struct {
	pb.UnimplementedGNMIServer
	src     Source
	door    *api.Door
	now     func() time.Time
	hub     hub
	streams atomic.Int64
	gets    chan struct{} // a place for each Get at once
	// turn is held while a message to a subscriber is made, one at a time: however many there are,
	// they keep one processor busy at most, and what hosts are to be told finds another one free.
	turn    chan struct{}
	updates updates // made by whoever has the turn
	counts  counters
}

type counters struct {
	capabilities, gets, sets, subscribes, bad, sent, duplicates, eventsDropped, slow, stuck atomic.Uint64
}

// Counters count requests.
type Counters struct {
	api.DoorCounters
	Capabilities  uint64 `json:"capabilities"`
	Gets          uint64 `json:"gets"`
	Sets          uint64 `json:"sets"`
	Subscribes    uint64 `json:"subscribes"`
	Streams       uint64 `json:"streams"`        // of Subscribe, now
	Bad           uint64 `json:"bad"`            // requests answered with an error
	Sent          uint64 `json:"sent"`           // messages to subscribers
	Duplicates    uint64 `json:"duplicates"`     // values that a slow client did not get, but a newer one
	EventsDropped uint64 `json:"events_dropped"` // events that a slow client did not get
	Slow          uint64 `json:"slow"`           // clients cut off since too much waited for them
	Stuck         uint64 `json:"stuck"`          // clients cut off that took no message for a minute
}

// Counters returns what was counted.
func (s *Server) Counters() Counters {
	c := &s.counts
	return Counters{s.door.Counters(), c.capabilities.Load(), c.gets.Load(), c.sets.Load(), c.subscribes.Load(), uint64(max(0, s.streams.Load())), c.bad.Load(),
		c.sent.Load(), c.duplicates.Load(), c.eventsDropped.Load(), c.slow.Load(), c.stuck.Load()}
}

// New makes a server, for who may come in by a door.
func New(src Source, door *api.Door, now func() time.Time) *Server {
	return &Server{src: src, door: door, now: now, gets: make(chan struct{}, maxGets), turn: make(chan struct{}, 1), hub: newHub(src, now)}
}

// Bounds of what a peer may send or hold.
const (
	maxRequest  = 4 << 20  // bytes of a message
	maxHeaders  = 16 << 10 // bytes of the metadata of a request
	maxRequests = 128      // of one connection at once
	maxGets     = 4        // at once, the others wait
	// handshake is within which a connection has to be there, and somebody let in by it: strangers
	// keep no places.
	handshake = 10 * time.Second
	silent    = time.Minute // after which a peer is asked whether it is there
	idle      = 10 * time.Minute
)

// Serve answers on a listener until ctx ends; conf nil: without TLS.
func (s *Server) Serve(ctx context.Context, l net.Listener, conf *tls.Config) error {
	s.hub.ctx = ctx
	opts := []grpc.ServerOption{
		grpc.InTapHandle(s.enter), grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxRequests),
		grpc.ConnectionTimeout(handshake), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle, Time: silent, Timeout: silent / 3}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: silent / 6, PermitWithoutStream: true}),
	}
	if conf != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(conf)))
	}
	g := grpc.NewServer(opts...)
	pb.RegisterGNMIServer(g, s)
	ended := context.AfterFunc(ctx, g.Stop)
	defer ended()
	err := g.Serve(s.door.Watch(l, handshake))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// enter lets a request in, or not, before anything but its headers was read.
func (s *Server) enter(ctx context.Context, info *tap.Info) (context.Context, error) {
	need := api.Viewer
	if info.FullMethodName == pb.GNMI_Set_FullMethodName {
		need = api.Operator
	}
	var from net.Addr
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr
	}
	api.Asked(from)
	v, err := s.door.Enter(shown(ctx, info.Header), need, info.FullMethodName)
	switch {
	case err == nil:
		api.LetIn(from)
		return api.As(ctx, v), nil
	case errors.Is(err, api.ErrRefused):
		return ctx, status.Error(codes.PermissionDenied, err.Error())
	case errors.Is(err, api.ErrTooMany):
		return ctx, status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, api.ErrUnavailable):
		return ctx, status.Error(codes.Unavailable, err.Error())
	}
	return ctx, status.Error(codes.Unauthenticated, err.Error())
}

// shown is what a request shows of who asks: metadata username and password, authorization (Basic
// or Bearer), or the certificate of its connection.
func shown(ctx context.Context, md metadata.MD) api.Shown {
	one := func(name string) string {
		if v := md.Get(name); len(v) == 1 {
			return v[0]
		}
		return ""
	}
	out := api.Shown{From: remote(ctx), Name: one("username"), Password: one("password"), Authorization: one("authorization")}
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			out.Certificates = t.State.PeerCertificates
		}
	}
	return out
}

func remote(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.Addr{}
	}
	host, _, _ := net.SplitHostPort(p.Addr.String())
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}

// refuse counts a request that is answered with an error.
func (s *Server) refuse(err error) error {
	s.counts.bad.Add(1)
	return err
}

// unavailable is the error for a daemon that stops, or is too slow.
func unavailable(err error) error {
	return status.Error(codes.Unavailable, fmt.Sprintf("the device cannot be read now: %v", err))
}

// Capabilities implements gNMI.
func (s *Server) Capabilities(_ context.Context, req *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	s.counts.capabilities.Add(1)
	if _, err := depthOf(req.GetExtension()); err != nil {
		return nil, s.refuse(err)
	}
	out := &pb.CapabilityResponse{SupportedEncodings: encodings, GNMIVersion: version}
	for _, m := range modules {
		out.SupportedModels = append(out.SupportedModels, &pb.ModelData{Name: m.name, Organization: m.organization, Version: m.version})
	}
	return out, nil
}

// depthOf reads the extensions of a request that reads: how many elements below a path are wanted;
// 0: all.
func depthOf(list []*gnmi_ext.Extension) (depth int, err error) {
	for _, x := range list {
		switch e := x.GetExt().(type) {
		case *gnmi_ext.Extension_Depth:
			depth = int(min(e.Depth.GetLevel(), maxSteps))
		case *gnmi_ext.Extension_History:
			return 0, status.Error(codes.Unimplemented, "the history extension: what was is not kept, only the newest events")
		case *gnmi_ext.Extension_Commit, *gnmi_ext.Extension_MasterArbitration:
			return 0, status.Error(codes.InvalidArgument, "an extension of Set in a request that reads")
		}
	}
	return depth, nil
}
