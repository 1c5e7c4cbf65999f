package inof

import (
	"crypto/tls"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// A peer of another version can read why it is refused: the answer comes in its own
// version and names both.
func TestAPeerOfAnotherVersionIsToldInItsOwn(t *testing.T) {
	open := edit(openFrame(t, golden["open-client"].(*Open)), func(b []byte) []byte { b[4] = 1; return b })
	for _, dialer := range []bool{false, true} {
		s := newSession(t, dialer, nil)
		if _, err := s.Start(nil, t0); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Receive(open, nil, t0)
		answer := s.Notify(nil, err)
		if CodeOf(err) != CodeVersion || len(answer) < HeaderLen || answer[4] != 1 || MsgType(answer[5]) != TypeNotification {
			t.Fatalf("dialer %v: %v, told % x", dialer, err, answer)
		}
		told, err := decodeBody(TypeNotification, answer[HeaderLen:])
		n, _ := told.(*Notification)
		if err != nil || n.Code != CodeVersion || !strings.Contains(n.Text, "version 1") || !strings.Contains(n.Text, "version 2") {
			t.Errorf("dialer %v: told %+v, %v", dialer, n, err)
		}
	}
}

// What a reflector of another version answers reaches the operator.
func TestTheRefusalOfAPeerOfAnotherVersionIsRead(t *testing.T) {
	answer := newSession(t, false, nil).Notify(nil, &ProtocolError{Code: CodeVersion, Detail: "version 2, want 1", AnswerIn: 1})
	s := newSession(t, true, nil)
	if _, err := s.Start(nil, t0); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Receive(answer, nil, t0)
	if p, ok := errors.AsType[*PeerError](err); !ok || p.Code != CodeVersion || p.Text == "" {
		t.Errorf("%v", err)
	}
	keepalive := appendHeader(nil, HeaderLen, TypeKeepalive, 0, 1)
	keepalive[4] = 1
	if _, err := ParseHeader(keepalive, MaxMessage); CodeOf(err) != CodeVersion {
		t.Errorf("another message of another version: %v", err)
	}
}

// In mode tls too a peer of version 1 is told, and not only cut by an alert.
func TestVersion1InsideTLSIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fabricNet
		ca := newCA(t, "CA")
		r := startReflector(t, &f, tlsAuth(ca.issue(reflID, nil)), 1, threeZones, nil)
		synctest.Wait()
		c := tls.Client(rawPeer(t, &f), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{formerALPN}})
		open := edit(openFrame(t, golden["open-client"].(*Open)), func(b []byte) []byte { b[4] = 1; return b })
		if _, err := c.Write(open); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c)
		if len(got) < HeaderLen || got[4] != 1 {
			t.Fatalf("answered % x", got)
		}
		if m, err := decodeBody(TypeNotification, got[HeaderLen:]); err != nil || m.(*Notification).Code != CodeVersion {
			t.Errorf("told %+v, %v", m, err)
		}
		_ = c.Close()
		r.stop()
		if n := r.server.Counters(); n.BadVersion != 1 {
			t.Errorf("counters %+v", n)
		}
	})
}
