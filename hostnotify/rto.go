package hostnotify

// rto estimates how long a host may take for its next ack before something was lost, as
// RFC 6298 does for a connection. It differs in what it measures: not the round trip,
// which is mostly the time that notices wait in the agent's queue, but the pause between
// one ack and the next, or on an idle host between notice and ack. A host that works off
// 1,000 notices then still has the time-out of an idle one, and a frame that is lost
// while it is idle is repeated as early as ever.
//
// Acks come in bunches, so of the pauses within one time-out the longest is the sample.
type rto struct {
	least, most  stamp // bounds of the time-out
	srtt, rttvar stamp // of the samples; srtt is never before the first
	worst, until stamp // the longest pause of this time-out, and when it ends
	shift        uint8 // expiries since the last ack
}

func newRTO(cfg Config) rto {
	return rto{least: stamp(cfg.FirstRetry), most: stamp(cfg.MaxRetry), srtt: never, until: never}
}

// timeout is how long to wait for the next ack; it doubles with each expiry (RFC 6298,
// 5.5).
func (r *rto) timeout() stamp {
	d := r.least
	if r.srtt != never {
		d = max(d, r.srtt+4*r.rttvar)
	}
	for range r.shift {
		if d >= r.most {
			break
		}
		d *= 2
	}
	return min(d, r.most)
}

// note takes a pause that ended now with an ack.
func (r *rto) note(pause, now stamp) {
	r.worst = max(r.worst, pause)
	if now < r.until {
		return
	}
	r.sample(r.worst)
	r.worst, r.until = 0, now+r.timeout()
}

// sample is RFC 6298, 2.2 and 2.3.
func (r *rto) sample(d stamp) {
	if r.srtt == never {
		r.srtt, r.rttvar = d, d/2
		return
	}
	diff := r.srtt - d
	if diff < 0 {
		diff = -diff
	}
	r.rttvar += (diff - r.rttvar) / 4
	r.srtt += (d - r.srtt) / 8
}

// expire backs off.
func (r *rto) expire() {
	if r.shift < 63 {
		r.shift++
	}
}
