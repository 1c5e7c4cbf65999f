package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody may do who does not come by the management socket.
type Role int

// The roles, each with what those before it may do.
const (
	Viewer   Role = iota + 1 // read
	Operator                 // zones, ports, hosts
	Admin                    // the cluster, the configuration
)

var roleNames = map[Role]string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

func (r Role) String() string { return roleNames[r] }

// Token is one that is taken, by its SHA-256.
type Token struct {
	Name string
	Role Role
	Sum  [sha256.Size]byte
}

// ParseTokens reads a file of tokens: lines of a name, a role and the SHA-256 of the token
// in hexadecimal. Empty lines, and those that begin with #, are left out. No error repeats
// a digest.
func ParseTokens(data []byte) (list []Token, err error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("line %d has %d words, want NAME ROLE SHA256", n, len(f))
		}
		t := Token{Name: f[0]}
		for role, name := range roleNames {
			if name == f[1] {
				t.Role = role
			}
		}
		sum, err := hex.DecodeString(f[2])
		switch {
		case t.Role == 0:
			return nil, fmt.Errorf("line %d: role %q, allowed: viewer, operator, admin", n, f[1])
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("line %d: the third word is no SHA-256: 64 hexadecimal digits", n)
		case slices.ContainsFunc(list, func(o Token) bool { return o.Name == t.Name }):
			return nil, fmt.Errorf("line %d: %q is there twice", n, t.Name)
		}
		copy(t.Sum[:], sum)
		list = append(list, t)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return list, nil
}
