package errdown

import (
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// CRC is frames that arrive damaged.
const CRC Cause = "crc"

// CRCConfig sets the receiving of damaged frames.
type CRCConfig struct {
	Errors int           // within Window that trip, 1..1,000,000
	Window time.Duration // 1 s..1 h
	// PerMillion, when it is not 0, lets them trip only if there are at least so
	// many among a million frames of the window. Set it on fast links, where a few
	// errors in ten seconds are within what the standard allows.
	PerMillion int // 0..1,000,000
	Reaction
}

func (c *CRCConfig) cause() (Cause, snsd.Reason) { return CRC, snsd.ReasonPacketError }

// Settings implements kind.
func (c *CRCConfig) Settings() []setting.Setting {
	return append([]setting.Setting{
		setting.Int("errors", &c.Errors, 3, 1, 1_000_000, "Damaged frames within the window that trip."),
		setting.Span("window", &c.Window, 10*time.Second, minWindow, maxWindow, "Over how long they are counted."),
		setting.Int("per-million", &c.PerMillion, 0, 0, 1_000_000, "If not 0, so many among a million frames of the window must be damaged as well. "+
			"Set it on links of 100 Gb/s and more: three errors in ten seconds are within what the standards allow them at full load."),
	}, c.clearing("As above. Hosts are told reason packet-error.")...)
}

func (c *CRCConfig) detector() Detector { return &crc{cfg: c} }

// maxCRCStep is the most CRC errors taken from one reading on its own. More is
// believed when the next reading grows like that too: a cable that bad goes on, a
// counter that jumped does not.
const maxCRCStep = 1000

// crc is a link that damages frames.
type crc struct {
	cfg            *CRCConfig
	errors, frames meter
	recent         window // errors, and the frames among which they were
	of             string // what is counted in truth
}

// What implements measurer.
func (d *crc) What() string { return d.of }

func (d *crc) Look(in *Input) Signal {
	if !in.up() {
		d.errors.drop()
		return Unwell
	}
	if !in.Reading.Has(fabric.FieldCRC) {
		return Quiet
	}
	c := d.cfg
	d.of = in.Reading.RxCRCOf
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

func (d *crc) Policy() Policy { return d.cfg.policy() }

func (d *crc) Need() Need {
	c := d.cfg
	fields := fabric.FieldCRC
	if c.PerMillion > 0 {
		fields |= fabric.FieldCounters
	}
	return Need{Fields: fields, Every: within(c.Window/5, 100*time.Millisecond, time.Second)}
}
