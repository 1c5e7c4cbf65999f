package daemon

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/internal/store"
)

// oldStates are files in which earlier versions of the program kept what they knew.
var oldStates = []string{"state.json", "epoch"}

// openState locks the state directory and reads what the last process kept in it. Only a
// directory that another daemon uses is an error: without what was kept, and where
// nothing can be kept, the daemon can work, but for restarts.
func (d *Daemon) openState(cfg *config.Config) error {
	warning, err := d.lockState(cfg.State)
	if err != nil {
		return err
	}
	k, found, err := keep.Open(keep.Config{Dir: cfg.State, Unsaved: d.env.Unsaved, Device: cfg.Device.ID.String(), Boot: d.env.Boot,
		Retry: saveRetry, Tell: d.tellSaving(cfg.State)})
	s, last, refused := store.Open(store.Config{Dir: cfg.State, Owner: cfg.Device.ID.String(), Retry: saveRetry, Tell: d.tellSaving(cfg.State)})
	d.store = s
	all := found
	all.Rows = slices.Concat(found.Rows, last.Rows)
	st, bad := device.StateOf(all)
	d.keeper, d.kept, d.unsure = k, st, st.Incomplete
	if d.lock != nil && d.lock.unused && found.None && err == nil {
		d.kept.Incomplete = false // a new device has told nobody anything, and has nothing to be careful about
	}
	d.restoreEvents(found.Rows)
	d.openAudit(cfg.State)
	d.zoneRows = found.Rows
	d.configs.open(d.keeper, found.Rows, cfg.File)
	d.warn("state", warning)
	d.warn("state", refused)
	for _, p := range slices.Concat(found.Problems, last.Problems, bad) {
		d.warn("state", &p)
	}
	for _, name := range oldStates {
		if _, err := os.Stat(filepath.Join(cfg.State, name)); err == nil && found.None {
			d.warn("state", fmt.Errorf("%s is of an earlier version of the program, which this one does not read: hosts of this switch may be told again what they know, and nothing is taken back for %s; remove it",
				filepath.Join(cfg.State, name), device.HoldBack))
		}
	}
	return nil
}

// tellSaving says when nothing can be saved, and when it can be again.
func (d *Daemon) tellSaving(dir string) func(error) {
	return func(err error) {
		if err == nil {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "state", Text: "state is saved again in " + dir})
			return
		}
		d.warn("state", fmt.Errorf("state cannot be saved: %w; make room in %s or make it writable: until then a restart may repeat notices", err, dir))
	}
}

// saveRetry is how long after an error the next try is.
const saveRetry = 10 * time.Second

// savingWarnings lists what is not saved, and what that means; none: all is saved.
func (d *Daemon) savingWarnings() (list []string) {
	if why := d.keeper.Warning(); why != "" {
		list = append(list, fmt.Sprintf("the state file cannot be written, tried again every %s: until then a restart may repeat notices (%s)", saveRetry, why))
	}
	if why := d.store.Warning(); why != "" {
		list = append(list, fmt.Sprintf("what reflectors said is not kept: a start while none of them answers may not notify hosts of losses (%s)", why))
	}
	return list
}

// tableEvent has the history for operators. ID: api.Event as JSON.
const tableEvent keep.Table = "event"

func eventKey(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }

// restoreEvents gives the log its history, and has it kept from now on.
func (d *Daemon) restoreEvents(rows []keep.Row) {
	var events []api.Event
	drop := func(id uint64) {
		d.keeper.Later(func() keep.Row { return keep.Row{Table: tableEvent, Key: eventKey(id)} })
	}
	for i := range rows {
		if rows[i].Table != tableEvent || len(rows[i].Key) != 8 {
			continue
		}
		var e api.Event
		if id := binary.BigEndian.Uint64(rows[i].Key); json.Unmarshal(rows[i].Value, &e) == nil && e.ID == id {
			events = append(events, e)
		} else {
			drop(id)
		}
	}
	for _, e := range d.log.Restore(events) {
		drop(e.ID)
	}
	d.log.Follow(func(e api.Event, gone uint64) {
		d.keeper.Later(func() keep.Row {
			b, _ := json.Marshal(e) // nothing in it can fail
			return keep.Row{Table: tableEvent, Key: eventKey(e.ID), Value: b}
		})
		if gone != 0 {
			drop(gone)
		}
	})
}

// claimEpoch takes the epoch of this start and keeps it for the next one, before anybody is told
// of it. Where it cannot be kept it is as good as the clock: should that have been set back
// since the last start, what another device still holds of that start looks newer until
// a reflector tells (see inof.Client.Resume).
func (d *Daemon) claimEpoch() {
	d.epoch = nextEpoch(d.started, d.kept.Epoch, randomEpoch())
	device.KeepEpoch(d.keeper, d.epoch)
	d.keeper.Flush()
	if err := d.keeper.Begin(); err != nil {
		d.warn("state", errors.New("the epoch of this start cannot be kept: should the clock be set back before the next start, only the random part of an epoch keeps it from being used twice"))
	}
}
