// Package units holds no code, only the test of the units for systemd that the project
// ships (dist/systemd): they are installed as docs/operations.md says in a machine made of
// namespaces, whose first process is a real systemd.
package units
