package link

import "sync/atomic"

// CredentialStore holds the credentials in force. New ones count for connections
// that come; Recheck of Server and Dialer holds them against those there are.
type CredentialStore struct {
	current atomic.Pointer[Credentials]
	refresh func()
}

// NewCredentialStore gives a store. Refresh, which may be nil, is called before each
// handshake from the connection's goroutine and may Set newer credentials; it must be
// safe for concurrent use.
func NewCredentialStore(c *Credentials, refresh func()) *CredentialStore {
	s := &CredentialStore{refresh: refresh}
	s.current.Store(c)
	return s
}

// Set replaces the credentials.
func (s *CredentialStore) Set(c *Credentials) { s.current.Store(c) }

// Get gives the credentials in force.
func (s *CredentialStore) Get() *Credentials { return s.current.Load() }

// Fresh gives the credentials in force after a look whether their files have changed.
func (s *CredentialStore) Fresh() *Credentials {
	if s.refresh != nil {
		s.refresh()
	}
	return s.Get()
}
