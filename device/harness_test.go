package device

import "github.com/openinof/inof/fabric"

// Addresses of the tests: initiators, targets, and the reflector.
const (
	i1 = "192.0.2.11"
	i2 = "192.0.2.12"
	t1 = "192.0.2.51"
	t2 = "192.0.2.52"
	t3 = "192.0.2.53"

	reflectorID = "10.0.0.100"
)

// hostMAC makes a MAC address of a name.
func hostMAC(name string) fabric.MAC {
	m := fabric.MAC{2, 0xaa}
	for i := range name {
		m[2+i%4] = m[2+i%4]*31 + name[i]
	}
	return m
}
