package reflector

import "fmt"

// OwnerError is a record of a device other than the one that sent it.
type OwnerError struct {
	Record string // the record
	Owner  string // the device it names
	Sender string // the device of the session
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("%s belongs to device %s, but device %s sent it", e.Record, e.Owner, e.Sender)
}
