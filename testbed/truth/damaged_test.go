package truth

import "testing"

// The others may be told as soon as damaged frames arrive and must be once the port is
// shut; when it is open they are told that all is well.
func TestDamagedFrames(t *testing.T) {
	c := newCourt(t)
	for range 2 { // the second fault is another one
		c.port(addrB, PortDamaged)
		c.says(addrA, addrB, "inactive", "packet-error") // found before the port is shut
		c.port(addrB, PortShut)
		c.says(addrC, addrB, "inactive", "packet-error") // late
		c.port(addrB, PortOpening)
		c.port(addrB, PortWell)
		c.says(addrA, addrB, "active", "none")
		c.says(addrC, addrB, "active", "none")
	}
	c.quiet()
	c.clean("told in order")
	c.port(addrB, PortDamaged)
	c.port(addrB, PortShut)
	c.port(addrB, PortOpening)
	c.says(addrA, addrB, "inactive", "link-down") // opened before it was told of, and no carrier yet
	c.port(addrB, PortWell)
	c.says(addrA, addrB, "active", "none")
	c.quiet()
	c.clean("it passed by")
}

func TestWhatIsWrongOfDamagedFrames(t *testing.T) {
	for name, do := range map[string]func(*court){
		"before they arrive": func(c *court) { c.says(addrA, addrB, "inactive", "packet-error") },
		"of another host":    func(c *court) { c.port(addrB, PortDamaged); c.says(addrA, addrC, "inactive", "packet-error") },
		"another reason": func(c *court) {
			c.port(addrB, PortDamaged)
			c.port(addrB, PortShut)
			c.says(addrA, addrB, "inactive", "link-down")
		},
		"well again before it is open": func(c *court) {
			c.port(addrB, PortDamaged)
			c.port(addrB, PortShut)
			c.says(addrA, addrB, "inactive", "packet-error")
			c.says(addrA, addrB, "active", "none")
		},
		"taken back before the port is shut": func(c *court) {
			c.port(addrB, PortDamaged)
			c.says(addrA, addrB, "inactive", "packet-error")
			c.says(addrA, addrB, "active", "none")
		},
		"told again of one that is over": func(c *court) {
			c.port(addrB, PortDamaged)
			c.says(addrA, addrB, "inactive", "packet-error")
			c.port(addrB, PortShut)
			c.port(addrB, PortOpening)
			c.port(addrB, PortWell)
			c.says(addrA, addrB, "active", "none")
			c.says(addrA, addrB, "inactive", "packet-error")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			do(c)
			c.finds(Unexpected)
		})
	}
}

// Who is placed in a zone, or registers, before the switch has found the damaged
// frames is active until it has.
func TestARegistrationBeforeDamagedFramesAreFound(t *testing.T) {
	c := newCourt(t)
	c.truth.SetAgent(addrB, false, c.tick())
	c.says(addrA, addrB, "inactive", "aged-out")
	c.says(addrC, addrB, "inactive", "aged-out")
	c.port(addrB, PortDamaged)
	c.truth.SetAgent(addrB, true, c.tick())
	c.says(addrA, addrB, "active", "none")
	c.says(addrA, addrB, "inactive", "packet-error")
	c.clean("found after the registration")
	c.says(addrA, addrB, "active", "none")
	c.finds(Unexpected)
}
