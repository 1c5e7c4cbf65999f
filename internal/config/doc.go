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
// Flags and variables are read by spf13/viper (Given). Files are not: of the key Ethernet1.100 it
// makes {ethernet1: {100: x}}, and it cannot say in which line an unknown key stands.
//
// Parse and ParseZones read no file; Load and LoadZones read files. A Given reads the variables of
// the process.
package config
