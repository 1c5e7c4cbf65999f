package errdown

import (
	"fmt"
	"reflect"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// Cause is why a port is faulty, by the name that operators see. Each is declared in a
// file of its own, which begins with its settings; Config lists them.
type Cause string

// kind is what the settings of a cause say about it. One that has settings which only
// together can be wrong has a method Together as well.
type kind interface {
	// cause is its name, and the reason that notices carry for it.
	cause() (Cause, snsd.Reason)
	// Settings are bound to the fields of the receiver.
	Settings() []setting.Setting
	// detector makes one for a port on which the receiver is in force.
	detector() Detector
}

// kinds are the causes that Config has as fields, with their settings there.
func (c *Config) kinds() (list []kind) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if k, ok := v.Field(i).Addr().Interface().(kind); ok {
			list = append(list, k)
		}
	}
	return list
}

// reasons has the causes there are; it is never changed.
var reasons = func() map[Cause]snsd.Reason {
	m := map[Cause]snsd.Reason{}
	for _, k := range new(Config).kinds() {
		c, reason := k.cause()
		m[c] = reason
	}
	return m
}()

// Reason is the one that notices carry for the cause; 0 for an unknown cause.
func (c Cause) Reason() snsd.Reason { return reasons[c] }

func (c Cause) String() string { return string(c) }

// UnmarshalText takes the name of a cause that there is.
func (c *Cause) UnmarshalText(b []byte) error {
	if _, known := reasons[Cause(b)]; !known {
		return fmt.Errorf("error-down cause %q is not known", b)
	}
	*c = Cause(b)
	return nil
}
