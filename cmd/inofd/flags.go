package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/config"
)

// source is where a command takes its configuration from: a file, the environment, and a
// flag for each setting.
type source struct {
	path  string
	cmd   *cobra.Command
	given *config.Given
}

// settingsHelp is said by commands with such flags.
const settingsHelp = "Every setting of docs/config.md outside of lists of entries can be a flag, --log.level debug, or a variable, INOF_LOG_LEVEL. " +
	"Flags win over variables, and these over the file. Without a file at the default place the rest may be enough, as in a container: --config \"\" asks for none."

// flags gives a command the flags of all settings.
func (s *source) flags(cmd *cobra.Command) {
	s.cmd = cmd
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&s.path, "config", "c", config.DefaultPath, "configuration file; empty: none")
	for _, one := range config.Flags() {
		f.String(one.Key, "", one.Usage)
	}
	s.given = config.NewGiven(f)
	cmd.Long = settingsHelp
}

// file is the path, or config.NoFile where none is asked for, or needed: nobody named one, there
// is none, and the device id is said elsewhere.
func (s *source) file() string {
	if s.path == "" {
		return config.NoFile
	}
	if _, _, said := s.given.Value("device.id"); !said || s.cmd.Flags().Changed("config") {
		return s.path
	}
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return config.NoFile
	}
	return s.path
}

func (s *source) load() (*config.Config, error) { return config.LoadWith(s.file(), s.given) }
