// Package browser holds no code, only tests: the dashboard (package dashboard) in headless
// Chromium. It is a module of its own, since nothing that runs on a switch needs what drives a
// browser. testdata/axe.min.js is axe-core 4.14.1 (MPL-2.0), which judges whether a page can be
// used by everybody; it is part of no program.
package browser
