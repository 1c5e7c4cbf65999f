package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// What follows the switches of the second lab with BenchOptions.Telemetry.
const (
	// telemetryRest is the time between two trials: faults do not strike while subscribers are
	// still told of the one before.
	telemetryRest = 300 * time.Millisecond

	benchGNMI   = "127.0.0.1:9339"
	benchHTTP   = "127.0.0.1:19518"
	benchToken  = "bench"
	scrapeEvery = time.Second
)

// telemetryEnv has a switch serve what is subscribed to.
func telemetryEnv(dir string) (map[string]string, error) {
	sum := sha256.Sum256([]byte(benchToken))
	file := filepath.Join(dir, "tokens")
	err := os.WriteFile(file, []byte(benchToken+" viewer "+hex.EncodeToString(sum[:])+"\n"), 0o644)
	return map[string]string{"INOF_MANAGEMENT_GNMI": benchGNMI, "INOF_MANAGEMENT_HTTP": benchHTTP, "INOF_MANAGEMENT_TOKEN_FILE": file}, err
}

// followers are all who follow the switches of a lab.
type followers struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
	got  atomic.Uint64 // messages
	bad  atomic.Pointer[error]
}

// follow has streams clients of gNMI follow the switch at which cables are pulled: counters of
// ports each second, and states of ports, peers and notices, and events, as they change. The
// metrics of all switches are scraped.
func follow(ctx context.Context, lab *Lab, streams int) (*followers, error) {
	ctx, stop := context.WithCancel(ctx)
	f := &followers{stop: stop}
	for _, node := range []string{"spine", "tor1", "tor2"} {
		dial := func(ctx context.Context, _, addr string) (c net.Conn, err error) {
			err = lab.Do(node, func() error {
				var d net.Dialer
				c, err = d.DialContext(ctx, "tcp", addr)
				return err
			})
			return c, err
		}
		n := streams
		if node != "tor1" {
			n = 0
		}
		for range n {
			if err := f.subscribe(ctx, dial); err != nil {
				_ = f.close() // the first error is the one
				return nil, fmt.Errorf("switch %s: %w", node, err)
			}
		}
		f.wg.Go(func() { f.scrape(ctx, dial) })
	}
	return f, nil
}

// subscribe follows one switch by one stream of a connection of its own.
func (f *followers) subscribe(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error)) error {
	conn, err := grpc.NewClient("passthrough:"+benchGNMI, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	if err != nil {
		return err
	}
	sub := func(mode pb.SubscriptionMode, every time.Duration, names ...string) *pb.Subscription {
		p := &pb.Path{}
		for _, name := range names {
			p.Elem = append(p.Elem, &pb.PathElem{Name: name})
		}
		return &pb.Subscription{Path: p, Mode: mode, SampleInterval: uint64(every)}
	}
	list := &pb.SubscriptionList{Encoding: pb.Encoding_PROTO, Subscription: []*pb.Subscription{
		sub(pb.SubscriptionMode_SAMPLE, time.Second, "interfaces", "interface", "state", "counters"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "interfaces", "interface", "state", "oper-status"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "inof", "interfaces"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "inof", "peers"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "inof", "notices"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "inof", "hosts"),
		sub(pb.SubscriptionMode_ON_CHANGE, 0, "inof", "events", "latest"),
	}}
	c, err := pb.NewGNMIClient(conn).Subscribe(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+benchToken), grpc.WaitForReady(true))
	if err == nil {
		err = c.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}})
	}
	if err != nil {
		conn.Close()
		return err
	}
	synced := make(chan error, 2) // the sync_response, and the end
	f.wg.Go(func() {
		defer conn.Close()
		for {
			r, err := c.Recv()
			if err != nil {
				if ctx.Err() == nil {
					f.bad.Store(&err)
				}
				synced <- err
				return
			}
			if f.got.Add(1); r.GetSyncResponse() {
				synced <- nil
			}
		}
	})
	select {
	case err := <-synced:
		return err
	case <-time.After(demoWait):
		return fmt.Errorf("no sync_response within %s", demoWait)
	}
}

// scrape reads the metrics of one switch again and again, as Prometheus does.
func (f *followers) scrape(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	client := &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: demoWait}
	defer client.CloseIdleConnections()
	for pause(ctx, scrapeEvery) == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+benchHTTP+"/metrics", nil)
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer "+benchToken)
		resp, err := client.Do(req)
		if err == nil {
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
			resp.Body.Close()
		}
		if err != nil && ctx.Err() == nil {
			f.bad.Store(&err)
		}
	}
}

// close ends them all; the error is of one that was cut off before.
func (f *followers) close() error {
	f.stop()
	f.wg.Wait()
	if err := f.bad.Load(); err != nil {
		return fmt.Errorf("telemetry of the second lab: %w", *err)
	}
	return nil
}
