package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// files are what the page is made of, by the path of the request.
var files = map[string]string{
	"/":             "index.html",
	"/app.js":       "app.js",
	"/app.css":      "app.css",
	"/icon.svg":     "icon.svg",
	"/licenses.txt": "licenses.txt",
}

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// policy is the page's Content-Security-Policy (W3C CSP level 3): nothing comes from elsewhere,
// nothing frames it, and no text can become markup or script. lit-html is the one maker of markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"

// Has reports whether a path is one of the page's files.
func Has(p string) bool { return files[p] != "" }

// Page serves the files of the page; they are the same for everybody, and hold no secret.
func Page() http.Handler {
	tags := map[string]string{}
	for _, name := range files {
		data, err := static.ReadFile("static/" + name)
		if err != nil {
			panic(err) // only a change of this package can cause it
		}
		sum := sha256.Sum256(data)
		tags[name] = `"` + hex.EncodeToString(sum[:8]) + `"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := files[r.URL.Path]
		if name == "" {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		Harden(w.Header())
		h := w.Header()
		h.Set("Content-Type", types[path.Ext(name)])
		h.Set("Cache-Control", "no-cache") // asked for again each time, and not sent when it is the same
		h.Set("ETag", tags[name])
		if strings.Contains(r.Header.Get("If-None-Match"), tags[name]) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		data, _ := static.ReadFile("static/" + name) // read above
		_, _ = w.Write(data)                         // an error is the reader's: it has gone
	})
}

// Harden sets the headers that keep others away from the page.
func Harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}
