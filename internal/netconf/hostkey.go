package netconf

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/openinof/inof/internal/wholefile"
)

// hostKeyFile is where the host key is kept, below the state directory.
const hostKeyFile = "netconf-host-key"

// HostKey gives the host key of a device: made at the first start, and the same from then on. One
// that cannot be read is never replaced: clients would take that for an attack.
func HostKey(dir string) (ssh.Signer, error) {
	path := filepath.Join(dir, hostKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = makeHostKey(path); err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("host key %s: %w; restore it, or remove it for a new one, of which clients will warn", path, err)
	}
	return key, nil
}

// makeHostKey writes a new key, all of it or none.
func makeHostKey(path string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "inofd NETCONF")
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(block)
	return text, wholefile.Put(path, 0o600, text)
}
