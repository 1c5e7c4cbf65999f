// Package scripts holds no code: beside the shell scripts that the Makefile and the CI
// run lies only their test.
package scripts
