package fabric

var _ HealthReader = (*Fake)(nil)

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
