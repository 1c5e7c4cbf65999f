// Package ygot has the tests of what the device says against OpenConfig's models, and of our own
// YANG modules, as openconfig/ygot and goyang read them. It is a module of its own: inofd needs
// neither.
package ygot
