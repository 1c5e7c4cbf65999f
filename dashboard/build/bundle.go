package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// maxSize bounds what a daemon carries with it, in bytes.
const maxSize = 300 << 10

// bundle makes the files that are served from those of a directory of sources.
func bundle(web string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, entry := range []string{"app.js", "app.css"} {
		r := api.Build(api.BuildOptions{
			EntryPoints:       []string{filepath.Join(web, entry)},
			Bundle:            true,
			Format:            api.FormatESModule,
			Target:            api.ES2022,
			MinifyWhitespace:  true,
			MinifySyntax:      true,
			MinifyIdentifiers: true,
			Charset:           api.CharsetUTF8,
			LegalComments:     api.LegalCommentsNone, // licenses.txt has them
			LogLevel:          api.LogLevelSilent,
		})
		var errs []error
		for _, m := range append(r.Errors, r.Warnings...) {
			at := ""
			if m.Location != nil {
				at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
			}
			errs = append(errs, errors.New(at+m.Text))
		}
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		files[entry] = r.OutputFiles[0].Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		data, err := os.ReadFile(filepath.Join(web, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	var licenses []byte
	for _, name := range []string{"lit-html", "uplot"} {
		data, err := os.ReadFile(filepath.Join(web, "vendor", name+".LICENSE"))
		if err != nil {
			return nil, err
		}
		licenses = append(licenses, name+"\n\n"+string(data)+"\n\n"...)
	}
	files["licenses.txt"] = licenses
	sum := 0
	for _, data := range files {
		sum += len(data)
	}
	if sum > maxSize {
		return nil, fmt.Errorf("the page has %d bytes, at most %d", sum, maxSize)
	}
	return files, nil
}
