package dashboard

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// NewUpstream passes requests on to a daemon: over its management socket, or with a socket of ""
// to an URL with a token (empty: none). What belongs to the browser stays here: cookies and
// where it comes from. A daemon that cannot be reached is an answer of the API with the status
// 502 and the code "unreachable".
func NewUpstream(socket string, at *url.URL, token string, transport *http.Transport) http.Handler {
	if socket != "" {
		var d net.Dialer
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }
		at = &url.URL{Scheme: "http", Host: "inofd"}
	}
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.IdleConnTimeout = 30 * time.Second
	transport.MaxIdleConnsPerHost = 8
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // a stream is handed on at once
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.Out.Host = at.Host
			for _, h := range []string{"Cookie", "Origin", "Referer", "Authorization"} {
				r.Out.Header.Del(h)
			}
			if token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Set-Cookie")
			r.Header.Set("Cache-Control", "no-store")
			r.Header.Set("X-Content-Type-Options", "nosniff")
			if r.StatusCode == http.StatusUnauthorized { // it is the operator of inofctl whose token is wrong, not the browser's
				r.Header.Del("WWW-Authenticate")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			Refuse(w, http.StatusBadGateway, "the device cannot be reached: "+err.Error(), "unreachable")
		},
	}
}
