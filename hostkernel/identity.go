package hostkernel

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/openinof/inof/internal/wholefile"
)

// Identity is who a host is to every subsystem: one name and one number for all its connections.
type Identity struct {
	NQN string
	ID  string // a UUID
}

// Doubt says what may make two hosts one to a target, or one host two; empty: nothing.
func (i *Identity) Doubt() string {
	named, _ := uuidOf(i.NQN)
	switch {
	case lazyUUID(i.ID):
		return fmt.Sprintf("hostid %s is a number that many machines have: a target takes them for one host", i.ID)
	case lazyUUID(named):
		return fmt.Sprintf("hostnqn %s has a number that many machines have: a target takes them for one host", i.NQN)
	case named != "" && i.ID != "" && !strings.EqualFold(named, i.ID):
		return fmt.Sprintf("hostid %s is not the UUID in hostnqn %s: a target may take this host for two", i.ID, i.NQN)
	}
	return ""
}

const (
	hostNQNFile = "etc/nvme/hostnqn"
	hostIDFile  = "etc/nvme/hostid"
	nqnPrefix   = "nqn.2014-08.org.nvmexpress:"
	uuidPrefix  = nqnPrefix + "uuid:"
	maxHostNQN  = 223 // bytes, NVM Express Base 4.7
)

// Identity reads /etc/nvme/hostnqn and hostid. What is missing is made of the machine's own
// number (DMI), else by chance, and written there, so that it stays the same for good. What is there
// is checked before anything is made of it.
func (t Tree) Identity() (Identity, error) {
	i, err := t.IdentityThere()
	if err == nil && (i.NQN == "" || i.ID == "") {
		err = t.complete(&i)
	}
	return i, err
}

// IdentityThere is Identity without what is missing: it writes nothing.
func (t Tree) IdentityThere() (i Identity, err error) {
	if i.NQN, err = t.read(hostNQNFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i.ID, err = t.read(hostIDFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if _, wrong := uuidOf(i.NQN); wrong != "" {
		return i, fmt.Errorf("/%s: %q %s: correct it, or remove the file to have one made", hostNQNFile, i.NQN, wrong)
	}
	if i.ID != "" && !isUUID(i.ID) {
		return i, fmt.Errorf("/%s: %q is no UUID: correct it, or remove the file to have one made", hostIDFile, i.ID)
	}
	return i, nil
}

// complete makes what is missing and writes it.
func (t Tree) complete(i *Identity) error {
	named, _ := uuidOf(i.NQN)
	id := cmp.Or(i.ID, named)
	if id == "" || lazyUUID(id) && i.ID == "" {
		id = t.machineID()
	}
	if err := os.MkdirAll(t.path("etc/nvme"), 0o755); err != nil {
		return err
	}
	if i.ID == "" {
		i.ID = id
		if err := wholefile.Put(t.path(hostIDFile), 0o644, []byte(id+"\n")); err != nil {
			return err
		}
	}
	if i.NQN == "" {
		i.NQN = uuidPrefix + i.ID
		return wholefile.Put(t.path(hostNQNFile), 0o644, []byte(i.NQN+"\n"))
	}
	return nil
}

// uuidOf is the UUID in a name that has one, with uuid: as the standard has it or without as the
// existing agent writes it, and what is wrong with a name.
func uuidOf(nqn string) (id, wrong string) {
	if nqn == "" {
		return "", ""
	}
	if len(nqn) > maxHostNQN || !strings.HasPrefix(nqn, "nqn.") || strings.ContainsFunc(nqn, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", fmt.Sprintf("is no NQN: want nqn. and more, of at most %d bytes without spaces", maxHostNQN)
	}
	id, ours := strings.CutPrefix(nqn, nqnPrefix)
	id = strings.TrimPrefix(id, "uuid:")
	switch {
	case !ours:
		return "", ""
	case !isUUID(id):
		return "", "is cut or mistyped: it ends in no UUID"
	}
	return id, ""
}

// isUUID reports whether s is a UUID in its text form (RFC 9562 section 4).
func isUUID(s string) bool {
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return len(s) == 36
}

// lazyUUID reports whether a UUID is one that firmware has where nobody gave it one: the same digits
// throughout, or the placeholder of a widespread BIOS in either order of bytes.
func lazyUUID(s string) bool {
	id, err := ParseID(s)
	if err != nil {
		return false
	}
	const placeholder = "-0006-000700080009"
	return id == [16]byte(bytes.Repeat(id[:1], len(id))) || s == "03000200-0400-0500"+placeholder || s == "00020003-0004-0005"+placeholder
}

func (t Tree) machineID() string {
	if v, err := t.read("sys/class/dmi/id/product_uuid"); err == nil && isUUID(v) && !lazyUUID(v) {
		return strings.ToLower(v)
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b)                         // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // RFC 9562, version 4
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ParseID reads a host identifier, a UUID.
func ParseID(s string) (id [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("host id %q: want a UUID", s)
	}
	return [16]byte(b), nil
}
