package hostnotify

// pacer keeps a port below its limit of frames in any window of time, by
// remembering when the last frames were sent. Unlike a token bucket of the same size it
// is exact: no window at any offset holds more than the limit, and a port that was
// quiet may still send all of them at once.
type pacer struct {
	window stamp
	keep   int // frames of each window that only urgent ones may use
	at     int // where the next one goes
	last   []stamp
}

func newPacer(cfg Config) pacer {
	p := pacer{window: stamp(cfg.Window), keep: cfg.FramesPerWindow / 4, last: make([]stamp, cfg.FramesPerWindow)}
	for i := range p.last {
		p.last[i] = never
	}
	return p
}

// ready is the moment from which a frame may be sent.
func (p *pacer) ready(urgent bool) stamp {
	back := len(p.last)
	if !urgent {
		back -= p.keep
	}
	s := p.last[(p.at-back+len(p.last))%len(p.last)]
	if s == never {
		return never
	}
	return s + p.window
}

func (p *pacer) note(now stamp) {
	p.last[p.at] = now
	p.at = (p.at + 1) % len(p.last)
}

// idle reports whether nothing was sent in the last window.
func (p *pacer) idle(now stamp) bool {
	s := p.last[(p.at-1+len(p.last))%len(p.last)]
	return s == never || now-s >= p.window
}
