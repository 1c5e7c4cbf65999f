// Package logbound keeps a log readable and small whatever happens: a port that flaps, a
// host that floods or a peer that comes and goes writes some lines a window, then one line
// that says how many were left out.
//
// A line is like another when the level and the text are the same but for numbers and
// addresses. Of lines that are alike, those of one port, device or peer are bounded, and
// all of them together more generously. A flood of one kind therefore takes nothing from
// another kind, from another port, or from a higher level.
package logbound
