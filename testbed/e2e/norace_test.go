//go:build !race

package e2e

// raceDetector tells that the programs are to be built with it too.
const raceDetector = false
