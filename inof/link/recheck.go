package link

import "github.com/openinof/inof/inof/wire"

// Recheck ends the sessions whose certificates or passwords are not taken any more, and
// those that may begin anew with a newer password. It tells how many these are.
func (s *Server) Recheck() int {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.peers))
	for _, c := range s.peers {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	return recheckAll(conns)
}

// Recheck is that of Server for the session of a dialer.
func (d *Dialer) Recheck() int {
	d.mu.Lock()
	c := d.conn
	d.mu.Unlock()
	if c == nil || c.info().State != StateEstablished {
		return 0 // establish does it
	}
	return recheckAll([]*conn{c})
}

func recheckAll(conns []*conn) (cut int) {
	for _, c := range conns {
		err := c.recheck()
		if err == nil && c.password() == PasswordOld {
			err = &wire.ProtocolError{Code: wire.CodeCease, Detail: "the session begins anew with the new password, where both sides have it"}
		}
		if err != nil {
			c.out.shut(err)
			cut++
		}
	}
	return cut
}

// recheck holds an established session against the credentials in force now.
func (c *conn) recheck() error {
	if t, ok := c.nc.(*tlsConn); ok {
		return t.recheck(c.device())
	}
	if c.password() == PasswordGone {
		return &wire.ProtocolError{Code: wire.CodeCease, Detail: "the password of this session is not in force any more"}
	}
	return nil
}
