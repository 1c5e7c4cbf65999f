package config

// Change is one setting that differs between two configurations.
type Change struct {
	Key     string // full key path
	Old     string
	New     string
	Restart bool // takes effect only after a restart of the daemon
}

// Changes are all differing settings in the order of the schema.
type Changes []Change
