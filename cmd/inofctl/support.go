package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/progress"
	"github.com/openinof/inof/internal/query"
)

// defaultConfig is where the configuration of the daemon is.
const defaultConfig = "/etc/inof/inofd.yaml"

// bundle is what goes to somebody who helps: names and contents.
type bundle struct {
	files   []bundleFile
	secrets [][]byte
	at      time.Time
}

type bundleFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Error string `json:"error,omitempty"` // why there is less than there should be
	text  []byte
}

// add puts a file in, without any of the secrets.
func (b *bundle) add(name string, text []byte, err error) {
	text = b.clean(text)
	f := bundleFile{Name: name, Bytes: len(text), text: text}
	if err != nil {
		f.Error = string(b.clean([]byte(err.Error())))
	}
	b.files = append(b.files, f)
}

// clean takes the secrets out of a text, as they are and as JSON writes them.
func (b *bundle) clean(text []byte) []byte {
	for _, s := range b.secrets {
		var plain bytes.Buffer
		enc := json.NewEncoder(&plain)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(string(s)) // a string can be written
		escaped, _ := json.Marshal(string(s))
		for _, form := range [][]byte{s, bytes.Trim(bytes.TrimSpace(plain.Bytes()), `"`), bytes.Trim(escaped, `"`)} {
			text = bytes.ReplaceAll(text, form, []byte("[secret]"))
		}
	}
	return text
}

// write writes a tar.gz; its list is the first file.
func (b *bundle) write(w io.Writer) error {
	list, err := json.MarshalIndent(b.files, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range slices.Concat([]bundleFile{{Name: "contents.json", text: list}}, b.files) {
		if err := t.WriteHeader(&tar.Header{Name: "inof-support/" + f.Name, Mode: 0o600, Size: int64(len(f.text)), ModTime: b.at}); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// supportCommands are run for what the kernel and the system say.
var supportCommands = [][]string{
	{"uname", "-a"}, {"ip", "-s", "-d", "link"}, {"ip", "address"}, {"ip", "route"}, {"ip", "-6", "route"}, {"ss", "-tanp"},
	{"ps", "-eLo", "pid,tid,class,rtprio,stat,wchan:24,pcpu,rss,etimes,comm"}, {"timedatectl"}, {"systemctl", "status", "inofd", "inofd-bfd"}, {"journalctl", "-u", "inofd", "-u", "inofd-bfd", "-n", "5000", "--no-pager"},
}

func (a *app) supportCmd() *cobra.Command {
	var file string
	c := &cobra.Command{Use: "support [BUNDLE.tar.gz|-]", Short: "Collect what somebody who helps needs to see, without secrets", Args: arguments(0, 1),
		Long: "Collect all that the daemon shows, the settings in force in the configuration file and the environment, and what the system says, into one file. Passwords and keys of the " +
			"configuration are taken out of everything, wherever they stand: run it as a user who may read them (root), so that it knows them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			b := &bundle{at: a.now()}
			cfg, err := config.Load(file)
			if err != nil { // without passwords there are none to be taken out; nothing that holds them is collected
				var public error
				if cfg, public = config.LoadPublic(file); public != nil {
					cfg = nil
				}
			}
			if cfg != nil {
				b.secrets = cfg.Secrets()
				settings, jsonErr := json.MarshalIndent(cfg.Settings(), "", "  ")
				b.add("configuration.json", settings, errors.Join(err, jsonErr))
			} else {
				b.add("configuration.json", nil, err)
			}
			a.collect(cmd.Context(), b)
			path := "inof-support-" + a.now().UTC().Format("20060102-150405") + ".tar.gz"
			if len(args) == 1 {
				path = args[0]
			}
			if path == "-" {
				return b.write(cmd.OutOrStdout())
			}
			out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			if err := errors.Join(b.write(out), out.Close()); err != nil {
				return err
			}
			return a.print(map[string]any{"file": path, "contents": b.files}, func(w io.Writer) {
				fmt.Fprintf(w, "%s has %d files, without the passwords and keys of %s\n", path, len(b.files), file)
				for _, f := range b.files {
					if f.Error != "" {
						fmt.Fprintf(w, "  %s: %s\n", f.Name, query.Printable(cmp.Or(f.Error, "empty")))
					}
				}
			})
		}}
	c.Flags().StringVar(&file, "config", defaultConfig, "configuration of the daemon")
	return c
}

// hungTimeout is how long a daemon that has left one question without an answer is waited for.
const hungTimeout = 500 * time.Millisecond

// collect asks the daemon and the system; what does not answer is said in the list.
func (a *app) collect(ctx context.Context, b *bundle) {
	cl := api.NewClient(a.socket)
	defer cl.Close()
	paths := []string{"zoning", "zoning/history", "audit"}
	for i := range query.All {
		paths = append(paths, query.All[i].Path)
	}
	begun, p := time.Now(), progress.To(a.err, "sources")
	patience := a.patience
	for i, path := range paths {
		p.At(i, len(paths)+len(supportCommands), time.Since(begun))
		ctx, cancel := context.WithTimeout(ctx, patience)
		text, err := api.Ask[json.RawMessage](ctx, cl, path, url.Values{})
		cancel()
		if errors.Is(err, api.ErrNotRunning) {
			b.add("daemon.txt", nil, err)
			break
		}
		if errors.Is(err, context.DeadlineExceeded) { // it hangs: the rest of it is not waited for as long
			err, patience = a.unanswered(err, patience), min(patience, hungTimeout)
		}
		b.add("daemon/"+strings.ReplaceAll(path, "/", "-")+".json", text, err)
	}
	b.add("version.txt", []byte(api.VersionText()+"\n"), nil)
	for i, words := range supportCommands {
		p.At(len(paths)+i, len(paths)+len(supportCommands), time.Since(begun))
		ctx, cancel := context.WithTimeout(ctx, a.patience)
		text, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		cancel()
		b.add("system/"+strings.NewReplacer(" ", "_", "/", "_").Replace(strings.Join(words, " "))+".txt", text, err)
	}
}
