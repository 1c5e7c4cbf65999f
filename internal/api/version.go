package api

import "runtime/debug"

// Version of the program, set by the linker; `go install` leaves the module's.
var Version = ""

// VersionText gives Version, or what the build information says when it is not set.
func VersionText() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
