package gnmi

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openinof/inof/internal/telemetry"
)

// encodings are those that are spoken.
var encodings = []pb.Encoding{pb.Encoding_JSON, pb.Encoding_JSON_IETF, pb.Encoding_PROTO}

func checkEncoding(e pb.Encoding) error {
	for _, known := range encodings {
		if e == known {
			return nil
		}
	}
	return status.Errorf(codes.Unimplemented, "encoding %v is not spoken: use JSON, JSON_IETF or PROTO", e)
}

// whole is a value of a leaf without units of Go: a bool, string, uint64, int64, float64 or
// []string.
func whole(v any) any {
	switch v := v.(type) {
	case time.Time:
		return uint64(max(0, v.UnixNano()))
	case time.Duration:
		return int64(v)
	}
	return v
}

// scalar has an integer as the type of the leaf wants it.
func scalar(v *telemetry.Value) any {
	w := whole(v.V)
	if n, ok := w.(int64); ok && v.Leaf.Type != telemetry.TypeInt64 {
		return uint64(max(0, n))
	}
	return w
}

// typed encodes the value of one leaf.
func typed(v *telemetry.Value, e pb.Encoding) *pb.TypedValue {
	switch e {
	case pb.Encoding_PROTO:
		return protoValue(v)
	case pb.Encoding_JSON_IETF:
		return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: text(jsonValue(v, true))}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: text(jsonValue(v, false))}}
}

func protoValue(v *telemetry.Value) *pb.TypedValue {
	switch x := scalar(v).(type) {
	case bool:
		return &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: x}}
	case uint64:
		return &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: x}}
	case int64:
		return &pb.TypedValue{Value: &pb.TypedValue_IntVal{IntVal: x}}
	case float64:
		return &pb.TypedValue{Value: &pb.TypedValue_DoubleVal{DoubleVal: x}}
	case []string:
		l := &pb.ScalarArray{}
		for _, s := range x {
			l.Element = append(l.Element, &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: valid(s)}})
		}
		return &pb.TypedValue{Value: &pb.TypedValue_LeaflistVal{LeaflistVal: l}}
	case string:
		return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: valid(x)}}
	}
	return &pb.TypedValue{} // there are no others, see the test of the table
}

// valid is what a string of protobuf may be.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// jsonValue is a leaf as JSON has it; as RFC 7951 section 6.1: 64 bits and decimal64 as strings.
func jsonValue(v *telemetry.Value, ietf bool) any {
	x := scalar(v)
	if f, ok := x.(float64); ok {
		const most = math.MaxInt64 / 1000 // of decimal64 with three digits
		x = json.Number(decimal(min(max(f, -most), most)))
		if ietf {
			x = x.(json.Number).String()
		}
		return x
	}
	if ietf {
		switch v.Leaf.Type {
		case telemetry.TypeUint64, telemetry.TypeInt64, telemetry.TypeCounter, telemetry.TypeTime:
			switch n := x.(type) {
			case uint64:
				return strconv.FormatUint(n, 10)
			case int64:
				return strconv.FormatInt(n, 10)
			}
		}
	}
	return x
}

// decimal writes a decimal64 in its canonical form (RFC 7950 section 9.3.2).
func decimal(f float64) string {
	s := strings.TrimRight(strconv.FormatFloat(f, 'f', telemetry.Digits, 64), "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	if s == "-0.0" {
		s = "0.0"
	}
	return s
}

func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null") // no value of a leaf is of a kind that cannot be written
	}
	return b
}
