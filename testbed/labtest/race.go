//go:build race

package labtest

// raceDetector tells that the programs are to be built with it too.
const raceDetector = true
