package hostkernel

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Identity is who a host is to every subsystem: one name and one number for all its connections.
type Identity struct {
	NQN string
	ID  string // a UUID
}

const (
	hostNQNFile = "etc/nvme/hostnqn"
	hostIDFile  = "etc/nvme/hostid"
	uuidPrefix  = "nqn.2014-08.org.nvmexpress:uuid:"
)

// Identity reads /etc/nvme/hostnqn and hostid. What is missing is made of the machine's own
// number (DMI), else by chance, and written there, so that it stays the same for good.
func (t Tree) Identity() (Identity, error) {
	var i Identity
	var err error
	if i.NQN, err = t.read(hostNQNFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i.ID, err = t.read(hostIDFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i.NQN != "" && i.ID != "" {
		return i, nil
	}
	id := i.ID
	if id == "" {
		id = strings.TrimPrefix(i.NQN, uuidPrefix)
	}
	if id == "" || id == i.NQN { // no name, or one that holds no number
		if id, err = t.machineID(); err != nil {
			return i, err
		}
	}
	if err := os.MkdirAll(t.path("etc/nvme"), 0o755); err != nil {
		return i, err
	}
	if i.ID == "" {
		i.ID = id
		if err := os.WriteFile(t.path(hostIDFile), []byte(id+"\n"), 0o644); err != nil {
			return i, err
		}
	}
	if i.NQN == "" {
		i.NQN = uuidPrefix + i.ID
		if err := os.WriteFile(t.path(hostNQNFile), []byte(i.NQN+"\n"), 0o644); err != nil {
			return i, err
		}
	}
	return i, nil
}

func (t Tree) machineID() (string, error) {
	if v, err := t.read("sys/class/dmi/id/product_uuid"); err == nil && len(v) == 36 {
		return strings.ToLower(v), nil
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b)                         // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562, version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}

// ParseID reads a host identifier, a UUID.
func ParseID(s string) (id [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("host id %q: want a UUID", s)
	}
	return [16]byte(b), nil
}
