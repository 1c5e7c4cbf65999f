package sonic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits of what is taken from a server.
const (
	maxBulk     = 64 << 10 // bytes of one string
	maxElements = 4096     // of one array
	maxLine     = 1024     // bytes of a line
)

// errReply is an error that the server answered with; the connection goes on.
var errReply = errors.New("redis says")

// errProtocol is an answer that cannot be understood; the connection is of no use
// any more.
var errProtocol = errors.New("not the Redis protocol")

// appendCommand appends a command as an array of bulk strings.
func appendCommand(b []byte, args ...string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	for _, a := range args {
		b = append(b, "\r\n$"...)
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
	}
	return append(b, "\r\n"...)
}

// value is a string, or nothing.
type value struct {
	text string
	ok   bool
}

// readReply reads one answer: a string, number or status as one value, an array of
// these as several, an array within it (as SCAN has) as if it was no array. Errors wrap
// errReply or errProtocol, or are the connection's.
func readReply(r *bufio.Reader) ([]value, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if line[0] != '*' {
		v, err := readValue(r, line)
		return []value{v}, err
	}
	n, err := length(line, maxElements)
	if err != nil {
		return nil, err
	}
	out := make([]value, 0, max(n, 0))
	var failed error
	for within := 0; n > 0; n-- {
		if line, err = readLine(r); err != nil {
			return nil, err
		}
		if line[0] == '*' && within == 0 {
			if within, err = length(line, maxElements); err != nil {
				return nil, err
			}
			n += max(within, 0)
			continue
		}
		v, err := readValue(r, line)
		if errors.Is(err, errReply) {
			failed = err // the rest is to be read all the same
		} else if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, failed
}

func readValue(r *bufio.Reader, line string) (value, error) {
	switch line[0] {
	case '+', ':':
		return value{line[1:], true}, nil
	case '-':
		return value{}, fmt.Errorf("%w: %q", errReply, line[1:])
	case '$':
		n, err := length(line, maxBulk)
		if err != nil || n < 0 {
			return value{}, err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return value{}, err
		}
		if string(b[n:]) != "\r\n" {
			return value{}, fmt.Errorf("%w: a string of %d bytes ends in %q", errProtocol, n, b[n:])
		}
		return value{string(b[:n]), true}, nil
	}
	return value{}, fmt.Errorf("%w: type %q", errProtocol, line[0])
}

// length reads the number of a string's bytes or an array's elements; -1 is none.
func length(line string, most int) (int, error) {
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < -1 || n > most {
		return 0, fmt.Errorf("%w: length %q, want -1..%d", errProtocol, line[1:], most)
	}
	return n, nil
}

// readLine reads a line of at least one character, without its end.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("%w: a line of more than %d bytes", errProtocol, maxLine)
	}
	if err != nil {
		return "", err
	}
	if len(b) < 3 || b[len(b)-2] != '\r' {
		return "", fmt.Errorf("%w: line %q", errProtocol, b)
	}
	return string(b[:len(b)-2]), nil
}
