// Command build bundles the page of package dashboard: ../web into ../static. It is a module of
// its own, so that the bundler (github.com/evanw/esbuild) is no dependency of what it bundles for.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	files, err := bundle("../web")
	if err == nil {
		for name, data := range files {
			if err = os.WriteFile(filepath.Join("..", "static", name), data, 0o644); err != nil {
				break
			}
			fmt.Printf("static/%s: %d bytes\n", name, len(data))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
