// Package dashboard is the page that an operator looks at: its files, and the proxy by which
// inofctl brings it to a browser on the operator's own machine.
//
// The page reads the management API (package internal/api) and nothing else. Its source is in
// web: ES modules without a framework, with lit-html for what is drawn and uPlot for charts, both
// in web/vendor with their licences. What is served is in static, bundled from web by
// `go generate`; build is a module of its own, so that the bundler is no dependency of a daemon.
package dashboard

//go:generate sh -c "cd build && go run ."
