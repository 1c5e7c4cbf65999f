package netconf

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/zone/tree"
)

// This file has notifications (RFC 5277): the one stream has the events of the device.

// stream is the only one there is.
const stream = "NETCONF"

// subscription is what a client asked for.
type subscription struct {
	filter      *element
	start, stop time.Time // zero: from now on, for ever
}

func (c *call) createSubscription(ctx context.Context) ([]*element, error) {
	if c.following.Load() {
		return nil, refusef(tagInUse, "there is a subscription in this session already")
	}
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	if p := c.param("stream"); p != nil && p.value() != stream {
		return nil, refusef(string(tree.TagInvalidValue), "stream %.40q: there is %s", p.value(), stream).about("stream")
	}
	sub := subscription{filter: f}
	for _, p := range []struct {
		name string
		at   *time.Time
	}{{"startTime", &sub.start}, {"stopTime", &sub.stop}} {
		e := c.param(p.name)
		if e == nil {
			continue
		}
		if *p.at, err = time.Parse(time.RFC3339, e.value()); err != nil {
			return nil, refusef(string(tree.TagInvalidValue), "%s %.40q: want a time as 2026-01-02T15:04:05Z", p.name, e.value()).about(p.name)
		}
	}
	switch { // RFC 5277 section 2.1.1
	case !sub.stop.IsZero() && sub.start.IsZero():
		return nil, refusef(string(tree.TagMissingElement), "stopTime takes a startTime").about("startTime")
	case sub.start.After(time.Now()):
		return nil, refusef("bad-element", "startTime is in the future").about("startTime")
	case !sub.stop.IsZero() && !sub.stop.After(sub.start):
		return nil, refusef("bad-element", "stopTime is not after startTime").about("stopTime")
	}
	c.following.Store(true)
	last := c.srv.dev.Events(0).Last
	c.after = func() {
		c.followers.Go(func() {
			if err := c.session.notify(ctx, sub, last); err != nil {
				c.pipe.Close() // it cannot be written to
			}
		})
	}
	return nil, nil
}

// notify sends events until the context or the subscription ends.
func (s *session) notify(ctx context.Context, sub subscription, last uint64) error {
	if !sub.stop.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, sub.stop)
		defer cancel()
	}
	if !sub.start.IsZero() {
		b := s.srv.dev.Events(0)
		for i := range b.Events {
			if e := &b.Events[i]; !e.Time.Before(sub.start) && (sub.stop.IsZero() || e.Time.Before(sub.stop)) {
				if err := s.tell(sub, e.Time, event(e)); err != nil {
					return err
				}
			}
		}
		if err := s.tell(subscription{}, time.Now(), el(nsManagement, "replayComplete")); err != nil {
			return err
		}
		last = b.Last
	}
	for {
		b, err := s.srv.dev.Subscribe(ctx, last)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) && !sub.stop.IsZero() {
				s.following.Store(false)
				return s.tell(subscription{}, time.Now(), el(nsManagement, "notificationComplete"))
			}
			return nil // the session ends
		}
		if b.Missed > 0 {
			s.srv.tally(func(c *Counters) { c.Lost += b.Missed })
			lost := api.Event{Time: time.Now(), Kind: "lost", Text: fmt.Sprintf("%d events are lost: this client takes them too slowly", b.Missed)}
			if err := s.tell(sub, lost.Time, event(&lost)); err != nil {
				return err
			}
		}
		for i := range b.Events {
			if err := s.tell(sub, b.Events[i].Time, event(&b.Events[i])); err != nil {
				return err
			}
		}
		last = b.Last
	}
}

// tell sends what the filter takes of a notification.
func (s *session) tell(sub subscription, at time.Time, e *element) error {
	for _, e := range selected([]*element{e}, sub.filter) {
		s.srv.tally(func(c *Counters) { c.Notifications++ })
		s.count(&s.counts.notifications)
		if err := s.write(el(nsNotification, "notification", leafOf(nsNotification, "eventTime", at.UTC().Format(time.RFC3339Nano)), e)); err != nil {
			return err
		}
	}
	return nil
}

// event writes an event as the notification of our module.
func event(e *api.Event) *element {
	out := el(nsOperations, "event")
	say := func(name, text string) {
		if text != "" {
			out.kids = append(out.kids, leafOf(nsOperations, name, text))
		}
	}
	if e.ID != 0 {
		say("id", strconv.FormatUint(e.ID, 10))
	}
	say("time", strconv.FormatInt(e.Time.UnixNano(), 10))
	say("kind", e.Kind)
	say("text", e.Text)
	say("device", e.Device)
	say("port", e.Port)
	say("address", e.Addr)
	for _, k := range slices.Sorted(maps.Keys(e.Fields)) {
		say("field", k+"="+e.Fields[k])
	}
	return out
}

// streams is what RFC 5277 section 3.2 has of the streams.
func streams(since time.Time) *element {
	return el(nsManagement, "netconf", el(nsManagement, "streams", &element{space: nsManagement, name: "stream", keys: 1, kids: []*element{
		leafOf(nsManagement, "name", stream), leafOf(nsManagement, "description", "what happens on the device (openinof-inof-operations: event)"),
		leafOf(nsManagement, "replaySupport", "true"), leafOf(nsManagement, "replayLogCreationTime", since.UTC().Format(time.RFC3339)),
	}}))
}
