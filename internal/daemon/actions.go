package daemon

import (
	"net/netip"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// What a device.Core has done to the world goes by these.

// SendFrame implements device.Actions.
func (d *Device) SendFrame(port string, frame []byte) {
	d.left = d.now()
	var err error
	if d.stamper == nil {
		err = d.dp.Send(port, frame)
	} else if at, stampErr := d.stamper.SendStamped(port, frame); at.IsZero() {
		err = stampErr
	} else {
		d.left = at
	}
	if err != nil {
		d.sendErrors[port]++
		d.core.Complain(d.now(), "send", port, err)
	}
}

// ToReflectors implements device.Actions.
func (d *Device) ToReflectors(ds []wire.Delivery) {
	wire.StampSent(ds, d.now())
	d.delivered(d.toReflectors.Deliver(ds))
}

// tellReflectors hands a message that is no change of state to all sessions we dialed.
func (d *Device) tellReflectors(m wire.Message) {
	d.delivered(d.toReflectors.Deliver([]wire.Delivery{{To: d.toReflectors.Devices(), Msg: m}}))
}

// ToClients implements device.Actions.
func (d *Device) ToClients(ds []wire.Delivery) { d.delivered(d.toClients.Deliver(ds)) }

// Now implements device.Stopwatch.
func (d *Device) Now() time.Time { return d.now() }

// Left implements device.Stopwatch. Where the driver gives no stamp it is the moment before the
// frame was handed over: the kernel may carry it to its host, and the host's ack back,
// before it returns to us.
func (d *Device) Left() time.Time { return d.left }

// release tells clients what has changed, unless more messages of peers are there already:
// what they change may leave in the same writes. One change alone never waits, others see
// hold.
func (d *Device) release(now time.Time) {
	if d.core.Waiting() && (d.inbox.Len() == 0 || d.held.over(d.core.Losses(), now)) {
		began := d.now()
		losses := d.core.Losses()
		d.core.PullChanges(d.drained, began)
		done := d.now()
		d.held.done(losses, began, done)
		d.core.HandedOn(done)
	}
}

// drained reports whether the session of a client has taken what it was given. If not, it tells
// when it has.
func (d *Device) drained(dev netip.Addr) bool {
	p := d.toClients.Get(dev)
	return p != nil && p.WhenDrained()
}

func (d *Device) delivered(err error) {
	if err != nil {
		d.deliverError++
		d.core.Complain(d.now(), "deliver", "", err)
	}
}

// Event implements device.Actions.
func (d *Device) Event(e api.Event) { d.log.Append(e) }
