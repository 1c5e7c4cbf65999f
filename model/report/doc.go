// Package report shows what came out of a scenario: a summary for a terminal, two
// runs side by side, CSV files, and plots as PNG or SVG.
package report
