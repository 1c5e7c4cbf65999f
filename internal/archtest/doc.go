// Package archtest holds no code, only the test that keeps the import rule of the
// house: which package may import which, and what the pure rooms must not touch.
// The rule itself is the table in imports_test.go.
package archtest
