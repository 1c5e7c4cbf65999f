package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/daemon"
	"github.com/openinof/inof/internal/wholefile"
)

// keyMade is what password-key has done.
type keyMade struct {
	File string `json:"file"`
	Keys int    `json:"keys"`
}

func (a *app) passwordKeyCmd() *cobra.Command {
	var owner string
	c := &cobra.Command{Use: "password-key PASSWORD-FILE KEY-FILE", Short: "Make the key of the session password once, for a daemon with little memory", Args: arguments(2, 2),
		Long: "Make the keys of the passwords in PASSWORD-FILE and write them to KEY-FILE, mode 0600. Making one takes 64 MiB of memory, which the daemon does not need then: " +
			"write session.password-key-file in place of session.password-file. The file is as secret as the password. The daemon is not asked; any machine will do."}
	c.Flags().StringVar(&owner, "user", "", "give the file to this user, the one that the daemon runs as")
	c.RunE = func(_ *cobra.Command, args []string) error {
		uid, gid, err := idsOf(owner)
		if err != nil {
			return err
		}
		keys, err := daemon.PasswordKeys(args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		err = wholefile.Write(args[1], 0o600, func(f *os.File) error {
			if owner != "" {
				if err := f.Chown(uid, gid); err != nil {
					return err
				}
			}
			_, err := f.WriteString(strings.Join(keys, "\n") + "\n")
			return err
		})
		if err != nil {
			return err
		}
		done := keyMade{args[1], len(keys)}
		return a.print(done, func(w io.Writer) {
			fmt.Fprintf(w, "%s has %d key(s): write session.password-key-file: %s in place of session.password-file\n", done.File, done.Keys, done.File)
		})
	}
	return c
}

// idsOf finds a user of this machine.
func idsOf(name string) (uid, gid int, err error) {
	if name == "" {
		return 0, 0, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}
