package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/internal/wholefile"
)

// secretFile is where a reflector keeps what it makes the keys of paths from.
const secretFile = "path-secret"

// pathSecret gives the secret of this reflector: the one it had before, else a new one. One
// that cannot be kept works as well; the next start hands out other keys then.
func (d *Daemon) pathSecret(dir string) (s reflector.PathSecret) {
	path := filepath.Join(dir, secretFile)
	b, err := os.ReadFile(path)
	switch {
	case err == nil && len(b) == len(s):
		return reflector.PathSecret(b)
	case err == nil:
		d.warn("state", fmt.Errorf("%s has %d bytes, want %d: it is made anew", path, len(b), len(s)))
	case !errors.Is(err, fs.ErrNotExist):
		d.warn("state", fmt.Errorf("secret of the paths between devices: %w: it is made anew", err))
	}
	_, _ = rand.Read(s[:]) // never fails
	if err := wholefile.Put(path, 0o600, s[:]); err != nil {
		d.warn("state", fmt.Errorf("secret of the paths between devices: %w: until it can be kept each start hands out other keys", err))
	}
	return s
}
