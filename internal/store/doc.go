// Package store keeps rows in tables over the end of a process and of its machine: one log to
// which changes are appended, and one snapshot that replaces it by rename when it has grown.
//
//	Put ──> pending, in memory ──> writer: appended to the log, fsync
//	                                       └─ log has grown: snapshot by rename, empty log by rename
//
// Put never waits for the disk. A writer of its own appends what has come in since its last batch,
// so that a kill or a power cut loses the last moment, and nothing that was written before. Both
// files have one layout (format.go): a head with a format number, then rows, each with a checksum
// and a mark by which the row behind a damaged one is found. A damaged row is left out, counted and
// named; a row at the end that was cut short is removed. While the disk is full the rows wait in
// memory, once a key, and are tried again.
package store
