// Package e2e holds the end-to-end tests: the real programs, built once a test run,
// in network namespaces on real kernel links, treated as users and as enemies
// would treat them.
//
// Its tests stand at the end of the whole chain and use nothing but what a user
// has: the programs' command lines, files, signals, sockets, and the management
// API. Every one of them ends with the proof that the fabric still does its job: a
// cable is pulled, and the hosts at both switches are told.
//
// They wait for conditions and never for a fixed time. Where the kernel forbids
// namespaces they are skipped and say so; with INOF_REQUIRE_NETNS=1 they fail.
package e2e
