package snsd

// Packer fills one payload after the other with notices, as many root TLVs as fit
// below MaxPayload. It works in one buffer of the caller and allocates nothing per
// notice. Use:
//
//	p.Start(header, Version)        // header: an Ethernet header, or nil; then Offer and Bound
//	for each notice: if ok, err := p.Add(&n); !ok { send(p.Finish()); p.Start(...); p.Add(&n) }
//	if p.Len() > 0 { send(p.Finish()) }
type Packer struct {
	buf     []byte
	start   int // offset of the payload in buf
	version uint8
	count   int
	most    int // bytes of the payload, but for a single notice
}

// Start begins a payload behind prefix (usually an Ethernet header), in prefix's own
// spare capacity when there is enough. version is 0 or 1, else the packet is refused by Add.
func (p *Packer) Start(prefix []byte, version uint8) {
	p.start, p.version, p.count, p.most = len(prefix), version, 0, MaxPayload
	p.buf = appendHeader(prefix, version, 0)
}

// Offer sets the extensions in the header of the payload that was started.
func (p *Packer) Offer(ext Extensions) { p.buf[p.start+extensionsAt] = byte(ext) }

// Bound keeps the payload that was started within so many bytes, the MTU of what it is sent out of;
// not below one notice, and never above MaxPayload. 0 is no bound.
func (p *Packer) Bound(bytes int) {
	if bytes > 0 {
		p.most = min(bytes, MaxPayload)
	}
}

// Add packs one notice. false without an error means that the payload is full: take
// it with Finish, Start the next one and add again. A notice that no receiver would
// take is refused with an *Error and changes nothing; so is any notice before Start.
func (p *Packer) Add(n *Notice) (bool, error) {
	if p.buf == nil {
		return false, refuse("packer", "payload", "not started", ErrMissing)
	}
	if p.version > Version {
		return false, refuse("packer", "version", p.version, ErrVersion)
	}
	if err := checkNotice(n); err != nil {
		return false, err
	}
	if p.count > 0 && len(p.buf)-p.start+NoticeLen(n, p.version) > p.most { // one always fits MaxPayload
		return false, nil
	}
	p.buf, _ = appendNoticeTLV(p.buf, n, p.version)
	p.count++
	return true, nil
}

// Len is the number of notices in the payload that is being filled.
func (p *Packer) Len() int { return p.count }

// Finish gives the prefix and the payload; nil when it holds no notice. The bytes
// belong to the caller; the Packer must be started again.
func (p *Packer) Finish() []byte {
	if p.count == 0 {
		return nil
	}
	setLength(p.buf[p.start:])
	b := p.buf
	p.buf, p.count = nil, 0
	return b
}

// PackNotices calls emit with one payload after the other until all notices are
// packed. The payload is valid during the call only. Notices that no receiver would
// take are left out; the first refusal is returned at the end.
func PackNotices(notices []Notice, version uint8, emit func(payload []byte)) error {
	var p Packer
	var first error
	buf := make([]byte, 0, MaxPayload)
	p.Start(buf, version)
	for i := range notices {
		ok, err := p.Add(&notices[i])
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if !ok { // one notice always fits into an empty payload
			emit(p.Finish())
			p.Start(buf, version)
			_, _ = p.Add(&notices[i])
		}
	}
	if b := p.Finish(); b != nil {
		emit(b)
	}
	return first
}
