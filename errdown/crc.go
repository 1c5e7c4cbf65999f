package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
)

// maxCRCStep is the most CRC errors taken from one reading on its own. More is
// believed when the next reading grows like that too: a cable that bad goes on, a
// counter that jumped does not.
const maxCRCStep = 1000

// crc is a link that damages frames.
type crc struct {
	cfg            *Config
	errors, frames meter
	recent         window // errors, and the frames among which they were
}

func newCRC(cfg *Config) Detector { return &crc{cfg: cfg} }

func (d *crc) Look(in *Input) Signal {
	if !in.up() {
		d.errors.drop()
		return Unwell
	}
	if !in.Reading.Has(fabric.FieldCRC) {
		return Quiet
	}
	c := &d.cfg.CRC
	n, span, ok := d.errors.read(in.Reading.RxCRC, maxCRCStep, in)
	good := uint64(0)
	if c.PerMillion > 0 { // errors among how many is not known without the frames
		ok = ok && in.Reading.Has(fabric.FieldCounters)
		n, _, known := d.frames.read(in.Reading.Counters.RxFrames, maxRate(span), in)
		good, ok = n, ok && known
	}
	if !ok {
		return Quiet
	}
	d.recent.add(n, good, in.Reading.At, span, c.Window)
	bad, good := d.recent.sum(in.Reading.At, c.Window)
	if c.PerMillion > 0 && bad >= uint64(c.Errors) && float64(bad)*1e6 < float64(c.PerMillion)*float64(bad+good) {
		return Unwell // errors, but few among so many frames
	}
	return c.level(float64(bad), float64(c.Errors))
}

func (d *crc) Next() time.Time { return time.Time{} }

func (d *crc) Reset() { d.errors.drop(); d.frames.drop(); d.recent.empty() }

func (d *crc) Policy() Policy { return d.cfg.CRC.policy() }

func (d *crc) Need() Need {
	c := &d.cfg.CRC
	if c.Response == RespondNone {
		return Need{}
	}
	fields := fabric.FieldCRC
	if c.PerMillion > 0 {
		fields |= fabric.FieldCounters
	}
	return Need{fields, within(c.Window/5, 100*time.Millisecond, time.Second)}
}
