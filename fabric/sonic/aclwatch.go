package sonic

import (
	"context"
	"sync"
	"time"
)

// Watch implements hardzone.Watcher: it hears of each change of our tables and rules in CONFIG_DB.
func (a *ACL) Watch(ctx context.Context, changed func()) error {
	return a.watch(ctx, changed, "ACL_TABLE|INOF_ZONES*", "ACL_TABLE_TYPE|INOF_ZONES*", "ACL_RULE|INOF_ZONES*")
}

// watch hears of changes by others to keys of CONFIG_DB.
func (a *aclDB) watch(ctx context.Context, changed func(), keys ...string) error {
	const database = "4"
	var patterns []string
	for _, k := range keys {
		patterns = append(patterns, "__keyspace@"+database+"__:"+k)
	}
	for first := true; ctx.Err() == nil; first = false {
		sub, err := subscribe(ctx, a.config.address, patterns...)
		if err == nil && !first {
			changed() // meanwhile anything may have happened
		}
		for err == nil {
			var m message
			var ok bool
			if m, ok, err = sub.next(time.Now().Add(time.Minute)); !ok {
				continue
			}
			if key, is := m.keyOf(database); is && !a.changes.mine(key+" "+m.text) {
				changed()
			}
		}
		if sub != nil {
			sub.close()
		}
		select {
		case <-time.After(redialDelay):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// ownChanges distinguishes our changes of keys from those of others.
type ownChanges struct {
	mu   sync.Mutex
	keys map[string]ownChange // by key and event
}

type ownChange struct {
	events int
	until  time.Time
}

// ownFor is how late the event of a change may be; one that never comes hides nothing after that.
const ownFor = 2 * time.Second

// expect notes that we are about to change a key: by hset or del.
func (o *ownChanges) expect(event, key string) {
	key += " " + event
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.keys == nil || len(o.keys) > 1<<16 {
		o.keys = make(map[string]ownChange)
	}
	c := o.keys[key]
	if now.After(c.until) {
		c.events = 0
	}
	o.keys[key] = ownChange{c.events + 1, now.Add(ownFor)}
}

// mine reports whether an event, with its key, is of a change of ours.
func (o *ownChanges) mine(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.keys[key]
	if c.events == 0 || time.Now().After(c.until) {
		delete(o.keys, key)
		return false
	}
	c.events--
	o.keys[key] = c
	return true
}
