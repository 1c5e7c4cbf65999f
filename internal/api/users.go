package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// User is somebody who logs in with a password, an SSH key or a certificate.
type User struct {
	Name   string
	Role   Role
	Hashes [][]byte // of passwords, bcrypt
	Keys   []SSHKey
	// Certificate: a certificate in that name is enough, of the CAs that are trusted.
	Certificate bool
}

// SSHKey is a public key in the form of RFC 4253 section 6.6.
type SSHKey struct {
	Type string
	Blob []byte
}

// keyTypes are the public keys that are taken.
var keyTypes = []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}

// maxCost bounds how long a bcrypt hash keeps a processor busy: about a second.
const maxCost = 14

// ParseUsers reads a file of users: lines of a name, a role, and the bcrypt hash of a password, an
// SSH public key as ssh-keygen writes it, or the word certificate. A user may have several lines.
// Empty lines, and those that begin with #, are left out. No error repeats a hash.
func ParseUsers(data []byte) (list []User, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 3 {
			return nil, fmt.Errorf("line %d has %d words, want NAME ROLE and a bcrypt hash, an SSH public key or the word certificate", n, len(f))
		}
		u := User{Name: f[0]}
		for role, name := range roleNames {
			if name == f[1] {
				u.Role = role
			}
		}
		if u.Role == 0 {
			return nil, fmt.Errorf("line %d: role %q, allowed: viewer, operator, admin", n, f[1])
		}
		if err := u.proof(f[2:]); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		i := slices.IndexFunc(list, func(o User) bool { return o.Name == u.Name })
		switch {
		case i < 0:
			list = append(list, u)
		case list[i].Role != u.Role:
			return nil, fmt.Errorf("line %d: %q is %s here and %s before", n, u.Name, u.Role, list[i].Role)
		default:
			list[i].Hashes, list[i].Keys = append(list[i].Hashes, u.Hashes...), append(list[i].Keys, u.Keys...)
			list[i].Certificate = list[i].Certificate || u.Certificate
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// proof reads what proves that somebody is a user.
func (u *User) proof(f []string) error {
	if strings.HasPrefix(f[0], "$") {
		cost, err := bcrypt.Cost([]byte(f[0]))
		if err != nil || cost > maxCost {
			return fmt.Errorf("the third word is no bcrypt hash of a cost of at most %d (htpasswd -nB %s makes one)", maxCost, u.Name)
		}
		u.Hashes = [][]byte{[]byte(f[0])}
		return nil
	}
	if f[0] == "certificate" && len(f) == 1 {
		u.Certificate = true
		return nil
	}
	if !slices.Contains(keyTypes, f[0]) {
		return fmt.Errorf("the third word is neither a bcrypt hash nor certificate nor one of %s", strings.Join(keyTypes, ", "))
	}
	if len(f) < 2 {
		return fmt.Errorf("%s without a key", f[0])
	}
	blob, err := base64.StdEncoding.DecodeString(f[1])
	if err != nil || len(blob) < 4 || uint64(binary.BigEndian.Uint32(blob)) > uint64(len(blob)-4) || string(blob[4:4+binary.BigEndian.Uint32(blob)]) != f[0] {
		return fmt.Errorf("no %s key: take the line of a .pub file as it is", f[0])
	}
	u.Keys = []SSHKey{{f[0], blob}}
	return nil
}
