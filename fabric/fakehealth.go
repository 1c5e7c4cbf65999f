package fabric

var (
	_ HealthReader = (*Fake)(nil)
	_ LossReader   = (*Fake)(nil)
)

// SetHealth replaces what a port tells of its health: the fields in h.Valid. The
// others, and always FieldCounters, follow SetCounters; the driver of a Fake tells
// nothing more than counters and CRC errors until SetHealth says so.
func (f *Fake) SetHealth(name string, h Health) error {
	return f.change(name, func(p *fakePort) { p.health = h })
}

// Health implements HealthReader.
func (f *Fake) Health(name string, want Fields) (Health, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.port(name)
	if err != nil {
		return Health{}, err
	}
	h := p.health
	h.At, h.Counters = f.cfg.Now(), p.counters
	if !h.Has(FieldCRC) {
		h.RxCRC = p.counters.RxCRC
	}
	h.Valid = (h.Valid | FieldsOfCounters) & want
	return h, nil
}

// Lose counts frames as lost at a port before anybody read them.
func (f *Fake) Lose(name string, frames uint64) error {
	return f.change(name, func(p *fakePort) { p.lost += frames })
}

// LostFrames implements LossReader.
func (f *Fake) LostFrames() (list []LostFrames) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.ports {
		list = append(list, LostFrames{Port: name, Frames: p.lost})
	}
	return list
}
