// Package manual makes the manual pages of a program from its commands, as packages install
// them: one page for the program and one for each command below it (man-pages(7)).
package manual

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Command is the hidden command "man DIR" of a program: it writes the pages of all its commands
// into a directory. Section is 1 for what everybody runs, 8 for what an administrator runs. The
// date of the pages is SOURCE_DATE_EPOCH, where that is set, so that the same sources give the
// same pages.
func Command(section, version string) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write the manual pages into a directory", Args: cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // no history section with the day of the build
			head := &doc.GenManHeader{Section: section, Source: "iNOF " + version, Manual: "iNOF"}
			if err := doc.GenManTree(root, head, dir); err != nil {
				return fmt.Errorf("manual pages in %s: %w", dir, err)
			}
			return nil
		},
	}
}
