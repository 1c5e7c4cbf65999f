package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// epochName is the file in the state directory that holds the last epoch: decimal
// digits and a newline.
const epochName = "epoch"

const (
	// maxEpochFile bounds what is read of it, in bytes: more than any epoch has.
	maxEpochFile = 32
	// maxEpoch is the largest epoch: beyond it there is no time.
	maxEpoch = 1<<63 - 1
	// epochStep is how far an epoch goes ahead of the last one when the clock has
	// been set back: enough for what is derived from it, such as the first number
	// of the notices (epoch >> 16), to be another one too.
	epochStep = 1 << 36
)

// nextEpoch gives the epoch of a start (docs/protocol.md, "Common fields"): the start
// time in nanoseconds, its low 16 bits random for starts that follow each other
// closely, but always greater than the last epoch, also when the clock was set back.
// It is never zero. Zero for last means that none is known.
func nextEpoch(now time.Time, last uint64, random uint16) uint64 {
	epoch := uint64(max(now.UnixNano(), 0))&^0xffff | uint64(random) | 1
	if last == 0 || epoch>>16 > last>>16 {
		return epoch
	}
	return min(last, maxEpoch-epochStep) + epochStep
}

// claimEpoch takes the epoch of this start and keeps it in dir for the next one,
// before anybody is told of it. With an error it is as good as the clock: should that
// have been set back since the last start, what another device still holds of that
// start looks newer until a reflector tells (see inof.Client.Resume).
func claimEpoch(dir string, now time.Time) (uint64, error) {
	path := filepath.Join(dir, epochName)
	last, err := readEpoch(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("the epoch of the last start in %s is not known: %w; this one is taken from the clock", path, err)
	}
	epoch := nextEpoch(now, last, uint16(rand.Uint32()))
	if e := writeEpoch(dir, epoch); e != nil {
		err = errors.Join(err, fmt.Errorf("the epoch of this start cannot be kept: %w; make %s writable: should the clock be set back before the next start, "+
			"only the random part of an epoch keeps it from being used twice", e, dir))
	}
	return epoch, err
}

func readEpoch(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEpochFile+1))
	if err != nil {
		return 0, err
	}
	text := strings.TrimSuffix(string(b), "\n")
	epoch, err := strconv.ParseUint(text, 10, 63)
	if err != nil || epoch == 0 || len(b) > maxEpochFile {
		return 0, fmt.Errorf("%.*q is no epoch", maxEpochFile, text)
	}
	return epoch, nil
}

// writeEpoch replaces the file and waits until it is on the disk.
func writeEpoch(dir string, epoch uint64) error {
	f, err := os.CreateTemp(dir, epochName+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = fmt.Fprintln(f, epoch)
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, epochName)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
