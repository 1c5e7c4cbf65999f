package gnmi

import (
	"context"
	"errors"
	"io"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/telemetry"
)

const (
	maxStreams       = 64  // of Subscribe at once
	maxSubscriptions = 128 // of one stream
	// targetSample is the interval of what TARGET_DEFINED samples.
	targetSample = 10 * time.Second
	// maxInterval bounds intervals that clients give.
	maxInterval = 24 * time.Hour
	// sendPoll is how often it is looked whether a client is stuck.
	sendPoll = time.Second
)

// Subscribe implements gNMI.
func (s *Server) Subscribe(c pb.GNMI_SubscribeServer) error {
	s.counts.subscribes.Add(1)
	if s.streams.Add(1) > maxStreams {
		s.streams.Add(-1)
		return s.refuse(status.Errorf(codes.ResourceExhausted, "%d clients are subscribed: no more are served", maxStreams))
	}
	defer s.streams.Add(-1)
	req, err := s.firstRequest(c)
	if err != nil {
		return s.refuse(err)
	}
	list := req.GetSubscribe()
	if list == nil {
		return s.refuse(status.Error(codes.InvalidArgument, "the first message of Subscribe has no SubscriptionList"))
	}
	st, err := s.newStream(list, req)
	if err != nil {
		return s.refuse(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	asks := make(chan error) // a Poll, or why no more will come
	go receive(ctx, c, list.GetMode(), asks)
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, c, st, list, asks) }()
	watch := time.NewTicker(sendPoll)
	defer watch.Stop()
	for {
		select {
		case err := <-done:
			if errors.Is(err, io.EOF) { // it has all it asked for
				return nil
			}
			return err
		case <-watch.C:
			if at := st.sending.Load(); at != 0 && s.now().Sub(time.Unix(0, at)) > stuck {
				s.counts.stuck.Add(1)
				return status.Errorf(codes.ResourceExhausted, "no message was taken for %v", stuck)
			}
		}
	}
}

// firstMessage is how long a client may be silent that has opened a Subscribe.
const firstMessage = 10 * time.Second

// firstRequest waits for what is asked for, but not for ever.
func (s *Server) firstRequest(c pb.GNMI_SubscribeServer) (*pb.SubscribeRequest, error) {
	type got struct {
		req *pb.SubscribeRequest
		err error
	}
	ch := make(chan got, 1)
	go func() {
		req, err := c.Recv()
		ch <- got{req, err}
	}()
	timer := time.NewTimer(firstMessage)
	defer timer.Stop()
	select {
	case g := <-ch:
		if errors.Is(g.err, io.EOF) {
			return nil, status.Error(codes.InvalidArgument, "Subscribe ended before it asked for anything")
		}
		return g.req, g.err
	case <-timer.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "Subscribe asked for nothing within %v", firstMessage)
	}
}

// receive hands over what the client says after its list: Polls, in that mode.
func receive(ctx context.Context, c pb.GNMI_SubscribeServer, mode pb.SubscriptionList_Mode, asks chan<- error) {
	for {
		req, err := c.Recv()
		switch {
		case errors.Is(err, io.EOF) && mode != pb.SubscriptionList_POLL:
			return // it only listens from now on
		case err != nil:
		case req.GetPoll() == nil:
			err = status.Error(codes.InvalidArgument, "a second message of Subscribe that is no Poll: open another stream")
		case mode != pb.SubscriptionList_POLL:
			err = status.Errorf(codes.InvalidArgument, "a Poll in a subscription of mode %v", mode)
		}
		select {
		case asks <- err:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// serve sends what is asked for. io.EOF: there is no more.
func (s *Server) serve(ctx context.Context, c pb.GNMI_SubscribeServer, st *stream, list *pb.SubscriptionList, asks <-chan error) error {
	send := func(r *pb.SubscribeResponse) error {
		st.sending.Store(s.now().UnixNano())
		err := c.Send(r)
		st.sending.Store(0)
		if err == nil {
			s.counts.sent.Add(1)
		}
		return err
	}
	// Whoever makes messages has the turn, and gives it up while one is sent: a client may be slow.
	begin, end := func() { s.turn <- struct{}{} }, func() { <-s.turn }
	note := func(n *pb.Notification) error {
		end()
		defer begin()
		return send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}})
	}
	sync := func() error {
		return send(&pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}})
	}
	present := func(tree telemetry.Tree) error {
		if !list.GetUpdatesOnly() {
			begin()
			err := st.all(tree, note)
			end()
			if err != nil {
				return err
			}
		}
		return sync()
	}
	if list.GetMode() != pb.SubscriptionList_STREAM {
		for {
			snapshot, err := s.src.Snapshot(ctx, st.need, time.Time{})
			if err != nil {
				return unavailable(err)
			}
			if err := present(telemetry.Read(snapshot)); err != nil {
				return err
			}
			if list.GetMode() == pb.SubscriptionList_ONCE {
				return io.EOF
			}
			select {
			case err := <-asks:
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	tree, err := s.hub.join(ctx, st)
	if err != nil {
		return unavailable(err)
	}
	defer s.hub.leave(st)
	if err := present(tree); err != nil {
		return err
	}
	tree = nil
	for {
		select {
		case <-st.kick:
		case err := <-asks:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		order, events, err := st.taken()
		if err != nil {
			s.counts.slow.Add(1)
			return err
		}
		begin()
		err = st.waited(events, order, s.now(), note)
		end()
		if err != nil {
			return err
		}
	}
}

// newStream checks what is asked for.
func (s *Server) newStream(list *pb.SubscriptionList, req *pb.SubscribeRequest) (*stream, error) {
	switch {
	case len(list.GetSubscription()) == 0:
		return nil, status.Error(codes.InvalidArgument, "a SubscriptionList without a subscription")
	case len(list.GetSubscription()) > maxSubscriptions:
		return nil, status.Errorf(codes.ResourceExhausted, "%d subscriptions: at most %d are taken", len(list.GetSubscription()), maxSubscriptions)
	case list.GetMode() < pb.SubscriptionList_STREAM || list.GetMode() > pb.SubscriptionList_POLL:
		return nil, status.Errorf(codes.InvalidArgument, "mode %d of a SubscriptionList is none", list.GetMode())
	}
	if err := checkEncoding(list.GetEncoding()); err != nil {
		return nil, err
	}
	depth, err := depthOf(req.GetExtension())
	if err != nil {
		return nil, err
	}
	st := &stream{encoding: list.GetEncoding(), target: list.GetPrefix().GetTarget(), counts: &s.counts, updates: &s.updates, kick: make(chan struct{}, 1)}
	for i, x := range list.GetSubscription() {
		q, err := parse(list.GetPrefix(), x.GetPath())
		if err == nil {
			err = q.models(list.GetUseModels())
		}
		if err != nil {
			return nil, err
		}
		found := theSchema.find(q)
		if len(found) == 0 {
			return nil, unknown(q)
		}
		u := &sub{origin: q.origin, leaves: map[*telemetry.Leaf]*wanted{}, sent: map[string]any{}}
		least := quickBeat
		for _, a := range found {
			u.leaves[a.Leaf] = &wanted{asked: a, depth: depth, onChange: a.Class == telemetry.Event || a.Class == telemetry.Config}
			st.need |= a.Needs
			least = max(least, a.Least)
		}
		if list.GetMode() == pb.SubscriptionList_STREAM {
			if err := u.mode(x, least, s.now()); err != nil {
				return nil, status.Errorf(codes.InvalidArgument, "subscription %d, %s: %v", i+1, q, err)
			}
			for l, w := range u.leaves {
				if !w.onChange && u.interval < targetSample {
					st.pace.Want(l, u.interval)
				}
			}
		}
		st.subs = append(st.subs, u)
	}
	return st, nil
}

// mode sets how a subscription of a stream is followed; least is the shortest period.
func (u *sub) mode(x *pb.Subscription, least time.Duration, now time.Time) error {
	interval, heart := time.Duration(x.GetSampleInterval()), time.Duration(x.GetHeartbeatInterval())
	switch {
	case x.GetSampleInterval() > uint64(maxInterval) || x.GetHeartbeatInterval() > uint64(maxInterval):
		return errors.New("an interval of more than 24h")
	case heart != 0 && heart < beat:
		return errors.New("heartbeat_interval of " + heart.String() + ": the shortest is " + beat.String())
	}
	u.beats, u.nextBeat = heart, now.Add(heart)
	switch x.GetMode() {
	case pb.SubscriptionMode_ON_CHANGE:
		for _, w := range u.leaves {
			w.onChange = true
		}
		return nil
	case pb.SubscriptionMode_TARGET_DEFINED:
		if interval != 0 {
			return errors.New("sample_interval with TARGET_DEFINED: the device chooses it; use SAMPLE")
		}
		interval = targetSample
	case pb.SubscriptionMode_SAMPLE:
		if interval == 0 {
			interval = least
		}
		if interval < least {
			return errors.New("sample_interval of " + interval.String() + ": the shortest is " + least.String())
		}
		for _, w := range u.leaves {
			w.onChange = false
		}
	default:
		return errors.New("a mode that is none of ON_CHANGE, SAMPLE and TARGET_DEFINED")
	}
	u.interval, u.next, u.suppress, u.quick = interval, now.Add(interval), x.GetSuppressRedundant(), interval%beat != 0
	return nil
}
