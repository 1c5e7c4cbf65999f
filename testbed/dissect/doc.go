// Package dissect checks the Wireshark plugin of this project (dist/wireshark)
// against the project's own encoders: its tests write capture files, have tshark
// read them, and compare every field it shows with the value that was encoded.
//
// The plugin is held to the same judgement as the decoders: what package wire or
// snsd refuses, it marks with an expert info of severity Error, and nothing else.
// Whatever the bytes are, it must never end in an error of Lua.
//
// There is nothing here but tests; they are skipped where there is no tshark with
// Lua, unless INOF_REQUIRE_NETNS=1.
package dissect
