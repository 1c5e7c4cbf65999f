// Package scenario reads experiments from YAML and runs them on the model: a
// topology, what its devices are made of, traffic, faults over time, what to record
// and what must come out. Reading is strict: an unknown key, a value out of range, a
// flow that cannot reach its destination are refused with the line and the reason.
//
// Parse gives a File, Run a Result; Result prints itself, and is written as CSV and
// plots by the package's other functions.
package scenario
