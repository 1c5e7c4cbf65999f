// Package netnstest makes network namespaces and cables between them for tests that
// need the kernel. Where something is missing for that a test is skipped, visibly, and
// fails instead when INOF_REQUIRE_NETNS=1, as in CI: no skip passes for a success.
package netnstest
