package api_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/api/apitest"
)

// caller notes who asks.
type caller struct {
	*apitest.Source
	by string
	c  api.Caller
}

func (s *caller) ChangeZone(ctx context.Context, o api.ZoneOrder) (api.ZoneChanged, error) {
	s.by = api.By(ctx)
	s.c, _ = api.CallerOf(ctx)
	return api.ZoneChanged{}, nil
}

func TestTheKernelSaysWhoAsks(t *testing.T) {
	src := &caller{Source: apitest.Sample()}
	socket, stop := apitest.Serve(t, src)
	c := api.NewClient(socket)
	defer c.Close()
	if err := c.RemoveZone(t.Context(), "z"); err != nil {
		t.Fatal(err)
	}
	stop()
	if src.c.UID != os.Getuid() || src.c.PID != os.Getpid() || !strings.HasSuffix(src.by, "(uid "+strconv.Itoa(os.Getuid())+", process "+strconv.Itoa(os.Getpid())+")") {
		t.Errorf("%q, %+v", src.by, src.c)
	}
	if by := api.By(t.Context()); by != "an operator" {
		t.Errorf("nobody known: %q", by)
	}
}
