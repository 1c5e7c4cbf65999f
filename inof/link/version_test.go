package link

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
)

// A peer of another version can read why it is refused: the answer comes in its own
// version and names both.
func TestAPeerOfAnotherVersionIsToldInItsOwn(t *testing.T) {
	open := inoftest.Edit(openFrame(t, inoftest.Golden["open-client"].(*wire.Open)), func(b []byte) []byte { b[4] = 1; return b })
	for _, dialer := range []bool{false, true} {
		s := newSession(t, dialer, nil)
		if _, err := s.Start(nil, inoftest.T0); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Receive(open, nil, inoftest.T0)
		answer := s.Notify(nil, err)
		if wire.CodeOf(err) != wire.CodeVersion || len(answer) < wire.HeaderLen || answer[4] != 1 || wire.MsgType(answer[5]) != wire.TypeNotification {
			t.Fatalf("dialer %v: %v, told % x", dialer, err, answer)
		}
		told, err := wire.DecodeBody(wire.TypeNotification, answer[wire.HeaderLen:])
		n, _ := told.(*wire.Notification)
		if err != nil || n.Code != wire.CodeVersion || !strings.Contains(n.Text, "version 1") || !strings.Contains(n.Text, "version 2") {
			t.Errorf("dialer %v: told %+v, %v", dialer, n, err)
		}
	}
}

// What a reflector of another version answers reaches the operator.
func TestTheRefusalOfAPeerOfAnotherVersionIsRead(t *testing.T) {
	answer := newSession(t, false, nil).Notify(nil, &wire.ProtocolError{Code: wire.CodeVersion, Detail: "version 2, want 1", AnswerIn: 1})
	s := newSession(t, true, nil)
	if _, err := s.Start(nil, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Receive(answer, nil, inoftest.T0)
	if p, ok := errors.AsType[*PeerError](err); !ok || p.Code != wire.CodeVersion || p.Text == "" {
		t.Errorf("%v", err)
	}
	keepalive := inoftest.AppendHeader(nil, wire.HeaderLen, wire.TypeKeepalive, 0, 1)
	keepalive[4] = 1
	if _, err := wire.ParseHeader(keepalive, wire.MaxMessage); wire.CodeOf(err) != wire.CodeVersion {
		t.Errorf("another message of another version: %v", err)
	}
}

// In mode tls too a peer of version 1 is told, and not only cut by an alert.
func TestVersion1InsideTLSIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		r := startReflector(t, &f, tlsAuth(ca.issue(inoftest.ReflID, nil)), 1, inoftest.ThreeZones, nil)
		synctest.Wait()
		c := tls.Client(rawPeer(t, &f), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{formerALPN}})
		open := inoftest.Edit(openFrame(t, inoftest.Golden["open-client"].(*wire.Open)), func(b []byte) []byte { b[4] = 1; return b })
		if _, err := c.Write(open); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		if len(got) < wire.HeaderLen || got[4] != 1 {
			t.Fatalf("answered % x", got)
		}
		if m, err := wire.DecodeBody(wire.TypeNotification, got[wire.HeaderLen:]); err != nil || m.(*wire.Notification).Code != wire.CodeVersion {
			t.Errorf("told %+v, %v", m, err)
		}
		_ = c.Close()
		r.stop()
		if n := r.server.Counters(); n.BadVersion != 1 {
			t.Errorf("counters %+v", n)
		}
	})
}
