// Package config is the one strict reader of the files an operator writes: the
// daemon's configuration and the zone file.
//
// Both are YAML. Everything that is wrong in a file is reported at once, each
// problem with its file, line, key, the offending value and what is allowed; a
// key nobody knows is an error with the nearest known one. What comes out is a
// typed, validated Config in which every setting has its default, so the rest of
// the program never asks whether something was written.
//
// A setting can be overridden by the environment, the key path in upper case with INOF_ in
// front and underscores for dots and hyphens (INOF_LOG_LEVEL for log.level), and both by a
// flag (--log.level). Each setting says where it comes from.
//
// spf13/viper was tried in version 1.21.0. As the reader of all it makes {ethernet1: {100: x}} of
// the key Ethernet1.100, and cannot say in which line an unknown key stands. As the reader of flags
// and variables alone (BindPFlag, BindEnv, IsSet) it gives the same values, an empty variable being
// none, but not whose they are: whether the flag was written, or else the variable, has to be asked
// beside it, which is all that section.beside and cmd/inofd/flags.go do in twenty lines. So none of
// these would go, six would come to bind each key, and with them viper and eight modules that it
// needs, for files that it does not read here: 2.2 MB of program.
//
// Parse and ParseZones are pure; Load and LoadZones read files and nothing else.
package config
