// Package cgroup finds the memory limit of the control group that this process is in, of both
// versions of control groups: the smallest of its own and of those above it.
package cgroup
