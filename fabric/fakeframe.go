package fabric

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// OnSend has fn called with each frame that a port sends, instead of keeping it for
// Sent or passing it to the connected port; fn owns the frame and may call
// Inject of any Fake. nil ends that.
func (f *Fake) OnSend(port string, fn func(frame []byte)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.port(port)
	if err != nil {
		return err
	}
	p.onSend = fn
	return nil
}

// Connect puts a cable between two ports, possibly of one Fake: what one sends the
// other receives, and each has carrier when both are open and SetCarrier took it
// from neither. Both cables count as plugged from here on.
func Connect(a *Fake, portA string, b *Fake, portB string) error {
	l := &fakeLink{dev: [2]*Fake{a, b}, name: [2]string{portA, portB}}
	for side, f := range l.dev {
		f.mu.Lock()
		p, err := f.port(l.name[side])
		if err == nil && p.link != nil {
			err = fmt.Errorf("%s: port %q already has a cable", f, p.Name)
		}
		if err == nil {
			p.link, p.side, p.cable = l, side, true
			l.up[side].Store(p.AdminUp)
		}
		f.mu.Unlock()
		if err != nil {
			if side == 1 {
				a.disconnect(portA, l)
			}
			return err
		}
	}
	l.refresh(0)
	l.refresh(1)
	return nil
}

func (f *Fake) disconnect(port string, l *fakeLink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.ports[port]; p != nil && p.link == l {
		p.link = nil
	}
}

// Send implements Dataplane: to OnSend's function, else over the cable, else into
// the list that Sent returns.
func (f *Fake) Send(port string, frame []byte) error {
	f.mu.Lock()
	p, err := f.port(port)
	if err == nil && (len(frame) < EthernetHeaderLen || len(frame) > EthernetHeaderLen+p.MTU) {
		err = fmt.Errorf("%s: port %q: %w: %d bytes, want %d..%d", f, port, ErrFrameSize,
			len(frame), EthernetHeaderLen, EthernetHeaderLen+p.MTU)
	}
	if err == nil && !p.Up() {
		f.stats.PortDown++
		err = fmt.Errorf("%s: port %q: %w", f, port, ErrPortDown)
	}
	if err != nil {
		f.mu.Unlock()
		return err
	}
	frame = bytes.Clone(frame)
	f.stats.Sent++
	p.counters.TxFrames++
	p.counters.TxBytes += uint64(len(frame))
	onSend, link, side := p.onSend, p.link, p.side
	if onSend == nil && link == nil {
		f.sent[port] = append(f.sent[port], frame)
	}
	f.mu.Unlock()
	switch {
	case onSend != nil:
		onSend(frame)
	case link != nil:
		// A wire does not tell the sender what becomes of the frame.
		_ = link.dev[1-side].Inject(link.name[1-side], frame)
	}
	return nil
}

// Sent returns and forgets the frames that a port without cable has sent, oldest
// first.
func (f *Fake) Sent(port string) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.sent[port]
	delete(f.sent, port)
	return list
}

// Inject has a port receive a whole Ethernet frame now; Run must be running. A frame that a real
// port would not pass on is counted, not an error; errors are ErrNoPort and ErrPortDown.
func (f *Fake) Inject(port string, frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.foreign[port] != nil {
		return nil // nobody listens there
	}
	p, err := f.port(port)
	if err != nil {
		return err
	}
	if !p.Up() {
		f.stats.PortDown++
		return fmt.Errorf("%s: port %q: %w", f, port, ErrPortDown)
	}
	p.counters.RxFrames++
	p.counters.RxBytes += uint64(len(frame))
	if len(frame) < EthernetHeaderLen {
		f.stats.Short++
		return nil
	}
	frame = untag(frame)
	fr := Frame{Port: port, Dst: MAC(frame[0:6]), Src: MAC(frame[6:12]),
		EtherType: binary.BigEndian.Uint16(frame[12:]), At: f.cfg.Now()}
	switch {
	case !f.running:
		f.stats.Dropped++ // nobody has a socket open
	case !IsControl(fr.EtherType, fr.Dst, p.MAC):
		f.stats.Filtered++
	case len(frame) > EthernetHeaderLen+MaxControlPayload:
		f.stats.Overlong++
	case len(f.received) >= f.cfg.QueueFrames:
		f.stats.Dropped++
		p.counters.RxDrops++
	default:
		f.stats.Received++
		fr.Payload = bytes.Clone(frame[EthernetHeaderLen:])
		f.received = append(f.received, fr)
		f.notify()
	}
	return nil
}

// IsControl reports whether an untagged frame is one that a port with the address own
// hands to the control plane: of a control protocol and addressed to that protocol's
// group or to the port itself.
func IsControl(etherType uint16, dst, own MAC) bool {
	switch etherType {
	case EtherTypeLLDP:
		return dst == MACNearestBridge || dst == own
	case EtherTypeNTS:
		return dst == MACNTS || dst == own
	case EtherTypeARP:
		return dst == own
	case EtherTypeIPv6:
		return dst == own || dst == MACAllNodes
	}
	return false
}

// untag takes off a priority tag (IEEE 802.1Q, VLAN 0), as receivers do.
func untag(frame []byte) []byte {
	const tagLen = 4
	tagged := len(frame) >= EthernetHeaderLen+tagLen && frame[12] == 0x81 && frame[13] == 0x00
	if !tagged || frame[14]&0x0f != 0 || frame[15] != 0 {
		return frame
	}
	return append(append([]byte(nil), frame[:12]...), frame[12+tagLen:]...)
}
