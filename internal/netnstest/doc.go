// Package netnstest makes network namespaces and cables between them for tests that
// need the kernel, and finds the programs of other projects that tests run. Where something
// is missing a test is skipped, visibly, and fails instead when INOF_REQUIRE_NETNS=1, as in
// CI: no skip passes for a success.
package netnstest
