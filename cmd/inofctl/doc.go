// Command inofctl is the operator's tool of iNOF: it shows and changes what the
// daemon on this device knows (through its unix socket), checks configuration
// files, and runs lab fabrics.
//
// Exit codes: 0 good, 1 it failed, 2 it was called wrongly.
package main
