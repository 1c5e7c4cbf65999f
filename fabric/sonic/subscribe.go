package sonic

import (
	"bufio"
	"context"
	"net"
	"strings"
	"time"
)

// subscription hears the messages of channels. Redis has one space of channels for all databases.
type subscription struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool
}

// message is what a channel said.
type message struct{ channel, text string }

// subscribe opens a connection of its own for channels that match the patterns; it ends with ctx.
func subscribe(ctx context.Context, address string, patterns ...string) (*subscription, error) {
	conn, err := dialRedis(address)
	if err != nil {
		return nil, err
	}
	s := &subscription{conn: conn, in: bufio.NewReaderSize(conn, maxLine)}
	s.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err = conn.SetDeadline(time.Now().Add(answerLimit)); err == nil {
		_, err = conn.Write(appendCommand(nil, append([]string{"PSUBSCRIBE"}, patterns...)...))
	}
	for range patterns {
		if err == nil {
			_, err = readReply(s.in)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// next waits for a message, but not longer than until; ok: there was one. After an error the
// subscription is of no use any longer.
func (s *subscription) next(until time.Time) (m message, ok bool, err error) {
	if s.in.Buffered() == 0 { // a deadline within a message would lose its place
		if err := s.conn.SetReadDeadline(until); err != nil {
			return m, false, err
		}
		if _, err := s.in.Peek(1); err != nil {
			if e, is := err.(net.Error); is && e.Timeout() {
				return m, false, nil
			}
			return m, false, err
		}
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return m, false, err
	}
	list, err := readReply(s.in)
	if err != nil {
		return m, false, err
	}
	return message{at(list, 2).text, at(list, 3).text}, at(list, 0).text == "pmessage", nil
}

func (s *subscription) close() {
	s.stop()
	_ = s.conn.Close()
}

// keyOf returns the key that a keyspace event of a database is about.
func (m message) keyOf(database string) (key string, ok bool) {
	return strings.CutPrefix(m.channel, "__keyspace@"+database+"__:")
}
