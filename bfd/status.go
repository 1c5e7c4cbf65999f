package bfd

import (
	"net/netip"
	"time"
)

// Status is one session as operators see it.
type Status struct {
	Peer      netip.Addr `json:"peer"`
	Local     netip.Addr `json:"local"` // zero: any
	Interface string     `json:"interface,omitempty"`
	Multihop  bool       `json:"multihop"`

	State       State  `json:"state"`
	RemoteState State  `json:"remote_state"`
	Report      Report `json:"report"` // what follows from it
	Diag        Diag   `json:"diag"`
	RemoteDiag  Diag   `json:"remote_diag"`
	LocalDiscr  uint32 `json:"local_discriminator"`
	RemoteDiscr uint32 `json:"remote_discriminator"` // zero: unknown
	Passive     bool   `json:"passive"`

	Configured Timers `json:"configured"`
	Remote     Timers `json:"remote"` // as last received
	// Effective times, after negotiation.
	TxInterval time.Duration `json:"tx_interval_ns"`
	DetectTime time.Duration `json:"detect_time_ns"` // zero: nothing was heard
	Polling    bool          `json:"polling"`
	Demand     bool          `json:"remote_demand"`
	Auth       AuthType      `json:"auth"`
	Keyless    bool          `json:"keyless"` // waits for its first key
	Keys       int           `json:"keys"`    // that are taken

	Since     time.Time     `json:"since"`      // of State
	LastHeard time.Time     `json:"last_heard"` // zero: never
	Flaps     uint64        `json:"flaps"`
	LastFlap  time.Time     `json:"last_flap"` // zero: never
	HoldUp    time.Duration `json:"hold_up_ns"`
	HoldLeft  time.Duration `json:"hold_left_ns"` // until Up is told; zero: nothing is held back
	DownLeft  time.Duration `json:"down_left_ns"` // until Down is told of a session that one side has begun anew; zero: nothing is held back
	Retiring  bool          `json:"retiring"`     // no longer wanted

	PacketsIn  uint64 `json:"packets_in"`
	PacketsOut uint64 `json:"packets_out"`
	TxLate     uint64 `json:"tx_late"`
}

// Key names the session.
func (s *Status) Key() Key {
	return Key{Peer: s.Peer, Local: s.Local, Interface: s.Interface, Multihop: s.Multihop}
}

// Status gives all sessions in order of their keys.
func (m *Manager) Status(now time.Time) []Status {
	t := m.advance(now)
	list := make([]Status, 0, len(m.byDiscr))
	for _, s := range m.sorted() {
		list = append(list, s.status(t))
	}
	return list
}

func (s *session) status(now instant) Status {
	st := Status{
		Peer: s.peer.Peer, Local: s.peer.Local, Interface: s.peer.Interface, Multihop: s.peer.Multihop, State: s.state, RemoteState: s.remoteState, Report: s.report.shown,
		Diag: s.localDiag, RemoteDiag: s.remoteDiag, LocalDiscr: s.localDiscr, RemoteDiscr: s.remoteDiscr,
		Passive: s.peer.Passive, Configured: s.peer.Timers, TxInterval: time.Duration(s.interval()),
		DetectTime: time.Duration(s.detectionTime()), Polling: s.polling, Demand: s.remoteDemand,
		Since: s.m.time(s.since), LastHeard: s.m.time(s.lastRx), Flaps: s.report.flaps, LastFlap: s.m.time(s.report.lastFlap),
		HoldUp: time.Duration(s.m.holdUp(s.report.level)), Retiring: s.lingers != never,
		PacketsIn: s.packetsIn, PacketsOut: s.packetsOut, TxLate: s.txLate,
	}
	if s.heard {
		st.Remote = Timers{MinTx: time.Duration(span(s.remoteMinTx)), MinRx: time.Duration(span(s.remoteMinRx)),
			DetectMult: s.remoteDetectMult, MinEchoRx: time.Duration(span(s.remoteMinEchoRx))}
	}
	if s.auth != nil {
		st.Auth, st.Keys, st.Keyless = s.auth.typ, len(s.auth.keys), s.keyless()
	}
	if s.report.suspect != never {
		st.DownLeft = time.Duration(max(0, s.report.suspect-now))
	}
	if s.report.pending != never {
		st.HoldLeft = time.Duration(max(0, s.report.pending-now))
	}
	return st
}

// ReportOf gives what is known of the path of one session; ok is false when there is
// no such session.
func (m *Manager) ReportOf(k Key) (r Report, ok bool) {
	s := m.byKey[k.canonical().index()]
	if s == nil || s.lingers != never {
		return ReportUnknown, false
	}
	return s.report.shown, true
}

// Healthy reports whether no session to this peer address reports a fault.
func (m *Manager) Healthy(peer netip.Addr) bool {
	peer = plain(peer)
	for k, s := range m.byKey {
		if k.Peer == peer && s.lingers == never && s.report.shown == ReportDown {
			return false
		}
	}
	return true
}
