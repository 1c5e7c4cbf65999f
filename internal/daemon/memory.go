package daemon

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/cgroup"
	"github.com/openinof/inof/internal/config"
)

const (
	// leastMemory is what a client with 4,096 hosts runs in, its BFD process with it.
	leastMemory = 64 << 20
	// roomForBallast is the memory limit from which on the collector is put off: see ballast.
	roomForBallast = 256 << 20
)

// LeastMemory is the memory limit that a configuration needs at least: a password is stretched
// in link.StretchMemory, which comes on top when it changes while the daemon runs.
func LeastMemory(cfg *config.Config) uint64 {
	if stretches(cfg) {
		return leastMemory + link.StretchMemory
	}
	return leastMemory
}

// stretches reports whether the daemon has to make a key of a password.
func stretches(cfg *config.Config) bool {
	used := cfg.Device.Roles.Reflector || len(cfg.Client.Reflectors) > 0
	return used && cfg.Session.Auth == config.AuthHMAC && cfg.Session.PasswordFrom.Kind != config.PasswordKeyFile
}

// CheckMemory refuses a password where the kernel would end the daemon for stretching it. Other
// configurations may fit into less than LeastMemory, with few hosts.
func CheckMemory(cfg *config.Config, limit cgroup.Limit) error {
	if least := LeastMemory(cfg); limit.Bytes > 0 && limit.Bytes < least && stretches(cfg) {
		return fmt.Errorf("session.auth hmac-sha256 needs %d MiB of memory to make a key of the password, and %s allows %d: "+
			"make the key once elsewhere (inofctl password-key) and write session.password-key-file, or raise the limit, or use auth: tls",
			least>>20, limit.File, limit.Bytes>>20)
	}
	return nil
}

// CheckSession says what a start would refuse about the password of a configuration.
func CheckSession(cfg *config.Config, limit cgroup.Limit) error {
	errs := []error{CheckMemory(cfg, limit)}
	for _, s := range []config.Secret{cfg.Session.Password, cfg.Session.OldPassword} {
		if cfg.Session.PasswordFrom.Kind == config.PasswordKeyFile && s != "" {
			errs = append(errs, keyError(cfg, s))
		}
	}
	return errors.Join(errs...)
}

// CheckHere is CheckSession with the limit of this process: that of the daemon where both run in one
// container. The file is the configuration's.
func CheckHere(file string, cfg *config.Config) error {
	limit, err := cgroup.MemoryLimit()
	if err == nil {
		err = CheckSession(cfg, limit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func keyError(cfg *config.Config, s config.Secret) error {
	if _, err := link.ParseKey(string(s.Reveal())); err != nil {
		return fmt.Errorf("session.password-key-file: %s: a line %w", cfg.Session.PasswordFrom.Name, err)
	}
	return nil
}

// limitMemory has Go collect memory before the limit of the control group is reached: a quarter is
// for what Go does not count, as program code, tables of eBPF in the kernel and the BFD process. The
// variable GOMEMLIMIT counts for more; it has no ballast either.
func limitMemory(limit cgroup.Limit, variable string) (ballast uint64) {
	ballast = 64 << 20
	if limit.Bytes > 0 && limit.Bytes < roomForBallast || variable != "" {
		ballast = 0
	}
	if limit.Bytes > 0 && variable == "" {
		debug.SetMemoryLimit(int64(limit.Bytes/4*3 + ballast)) // which is counted and takes none
	}
	return ballast
}
