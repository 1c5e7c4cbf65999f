package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/internal/wholefile"
)

// manifest says what a backup holds. It is its first file.
type manifest struct {
	Format  int          `json:"format"`
	Time    time.Time    `json:"time"`
	Device  string       `json:"device"`
	Name    string       `json:"name"`
	Version string       `json:"version"` // of the program
	Config  string       `json:"config"`
	Files   []backupFile `json:"files"`
	text    [][]byte
}

type backupFile struct {
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode"`
	UID  int         `json:"uid"`
	GID  int         `json:"gid"`
	Sum  string      `json:"sha256"`
	Size int64       `json:"bytes"`
}

const (
	backupFormat = 1
	manifestName = "manifest.json"
	maxBackup    = 256 << 20 // bytes of a file
	maxManifest  = 1 << 20
	// restoredMode is what a file may have of its permissions: nothing that is restored is run, and
	// only its owner writes it.
	restoredMode = 0o644
)

// keptFiles are those of the state directory that make a device what it is: the secret behind the
// keys of the paths, the host key of NETCONF by which clients know it, and the record of what
// operators did.
var keptFiles = []string{"path-secret", "netconf-host-key", "zones.last-good.yaml", "audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3", "audit.jsonl.4"}

func (a *app) backupCmd() *cobra.Command {
	var file string
	c := &cobra.Command{Use: "backup BACKUP.tar.gz", Short: "Save what makes this device what it is: configuration, zones, passwords, keys", Args: arguments(1, 1),
		Long: "Save the configuration, the files that it names (zones, passwords, keys, certificates) and what of the state directory cannot be had again. The backup has secrets " +
			"and is for its owner alone. inofctl restore puts it onto another machine. The daemon may run, or not.",
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := a.takeBackup(file)
			if err != nil {
				return err
			}
			out, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			if err := errors.Join(m.write(out), out.Sync(), out.Close()); err != nil {
				return errors.Join(err, os.Remove(args[0]))
			}
			return a.print(m, func(w io.Writer) {
				fmt.Fprintf(w, "%s has %d files of device %s (%s), secrets among them\n", args[0], len(m.Files), m.Device, m.Name)
			})
		}}
	c.Flags().StringVar(&file, "config", defaultConfig, "configuration of the daemon")
	return c
}

func (a *app) takeBackup(file string) (*manifest, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	m := &manifest{Format: backupFormat, Time: a.now().UTC(), Device: cfg.Device.ID.String(), Name: cfg.Device.Name, Version: api.VersionText(), Config: file}
	need := append([]string{file}, cfg.Files()...)
	for i, path := range append(need, inState(cfg.State)...) {
		err := m.add(path)
		missing := errors.Is(err, fs.ErrNotExist) && (i >= len(need) || path == cfg.Zones.File)
		if err != nil && !missing {
			return nil, err
		}
	}
	return m, nil
}

func inState(dir string) (out []string) {
	for _, name := range keptFiles {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

func (m *manifest) add(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f := backupFile{Path: path, Mode: info.Mode().Perm(), Size: int64(len(text)), Sum: sumOf(text)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.UID, f.GID = int(st.Uid), int(st.Gid)
	}
	m.Files = append(m.Files, f)
	m.text = append(m.text, text)
	return nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (m *manifest) write(w io.Writer) error {
	list, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	put := func(name string, text []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: m.Time}); err != nil {
			return err
		}
		_, err := t.Write(text)
		return err
	}
	if err := put(manifestName, list); err != nil {
		return err
	}
	for i, f := range m.Files {
		if err := put("files"+f.Path, m.text[i]); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// readBackup reads a backup whole and checks it: nothing is written before it is known to be sound.
func readBackup(path string) (*manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s is no sound backup: %w", path, fmt.Errorf(format, args...))
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, bad("%w", err)
	}
	t := tar.NewReader(z)
	next := func(most int) (string, []byte, error) {
		h, err := t.Next()
		if err != nil {
			return "", nil, err
		}
		text, err := io.ReadAll(io.LimitReader(t, int64(most)+1))
		if err == nil && len(text) > most {
			err = fmt.Errorf("%s has more than %d bytes", h.Name, most)
		}
		return h.Name, text, err
	}
	name, text, err := next(maxManifest)
	m := new(manifest)
	switch {
	case err != nil:
		return nil, bad("%w", err)
	case name != manifestName:
		return nil, bad("its first file is %q", name)
	}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, bad("%w", err)
	}
	if m.Format != backupFormat {
		return nil, bad("format %d is not %d, which this version reads", m.Format, backupFormat)
	}
	allowed, most := []string{m.Config}, config.MaxFileSize // the configuration is the first
	for i, want := range m.Files {
		at := slices.Index(allowed, want.Path)
		if at < 0 {
			return nil, bad("%q is neither named by its configuration %q nor one of the state directory, or is there twice", want.Path, m.Config)
		}
		allowed = slices.Delete(allowed, at, at+1)
		name, text, err := next(most)
		switch {
		case err != nil:
			return nil, bad("%s: %w", want.Path, err)
		case !filepath.IsAbs(want.Path) || filepath.Clean(want.Path) != want.Path || name != "files"+want.Path:
			return nil, bad("file %q in place of %q", name, want.Path)
		case sumOf(text) != want.Sum:
			return nil, bad("%s is not what was saved", want.Path)
		}
		m.text = append(m.text, text)
		m.Files[i].Mode = want.Mode.Perm() & restoredMode
		if i == 0 {
			cfg, err := config.LoadPublicText(m.Config, text)
			if err != nil {
				return nil, bad("%w", err)
			}
			allowed, most = append(cfg.Files(), inState(cfg.State)...), maxBackup
		}
	}
	return m, nil
}

// homes are the directories in which a device has its files. A configuration may name others, so a
// backup that another program made could have a password written to any place.
var homes = []string{filepath.Dir(defaultConfig), config.DefaultState}

// outside lists the files of a backup that are in none of homes.
func (m *manifest) outside() (list []string) {
	for _, f := range m.Files {
		if !slices.ContainsFunc(homes, func(dir string) bool { return strings.HasPrefix(f.Path, dir+"/") }) {
			list = append(list, f.Path)
		}
	}
	return list
}

func (a *app) restoreCmd() *cobra.Command {
	var root string
	var force, outside bool
	c := &cobra.Command{Use: "restore BACKUP.tar.gz", Short: "Make this machine the device that a backup was taken of", Args: arguments(1, 1),
		Long: "Write the files of a backup where they were, with their owners and permissions. The backup is checked as a whole before anything is written: it may have its configuration, " +
			"the files that this names, and those of its state directory that a backup has. Files that are there and differ are left alone without --force, and those " +
			"elsewhere than in " + strings.Join(homes, " and ") + " are refused without --outside. Each file is listed. The daemon must not run here, and the old device never again.",
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := readBackup(args[0])
			if err != nil {
				return err
			}
			if _, err := os.Stat(a.socket); err == nil && root == "" {
				cl := api.NewClient(a.socket)
				defer cl.Close()
				return fmt.Errorf("a daemon seems to run here (%s is there): stop it first (systemctl stop inofd inofd-bfd)", a.socket)
			}
			if list := m.outside(); len(list) > 0 && !outside {
				return fmt.Errorf("nothing was written; if these places are meant: --outside: %q", list)
			}
			if err := m.restore(root, force); err != nil {
				return err
			}
			return a.print(m, func(w io.Writer) {
				for _, f := range m.Files {
					fmt.Fprintf(w, "%v %s\n", f.Mode, query.Printable(filepath.Join(root, f.Path)))
				}
				fmt.Fprintf(w, "%d files of device %s (%s), as of %s, are in place; next: inofd check %s, then systemctl start inofd-bfd inofd\n", len(m.Files), m.Device, m.Name, m.Time.Format(time.RFC3339), m.Config)
			})
		}}
	c.Flags().StringVar(&root, "root", "", "write below this directory, as of a mounted disk")
	c.Flags().BoolVar(&force, "force", false, "also over files that are there and differ")
	c.Flags().BoolVar(&outside, "outside", false, "also files that the configuration of the backup names elsewhere than in "+strings.Join(homes, " and "))
	return c
}

// restore writes the files. Those that differ are looked for first.
func (m *manifest) restore(root string, force bool) error {
	var differ []error
	for i, f := range m.Files {
		there, err := os.ReadFile(filepath.Join(root, f.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && string(there) == string(m.text[i]) || force:
		case err != nil:
			differ = append(differ, err)
		default:
			differ = append(differ, fmt.Errorf("%s is there and differs", filepath.Join(root, f.Path)))
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("nothing was written; if it is meant: --force: %w", errors.Join(differ...))
	}
	for i, f := range m.Files {
		if err := f.write(filepath.Join(root, f.Path), m.text[i]); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file at once or not at all, first with its permissions and then with its
// contents.
func (f *backupFile) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return wholefile.Write(path, f.Mode.Perm(), func(to *os.File) error {
		_, err := to.Write(text)
		if os.Geteuid() == 0 {
			err = errors.Join(err, to.Chown(f.UID, f.GID))
		}
		return err
	})
}
