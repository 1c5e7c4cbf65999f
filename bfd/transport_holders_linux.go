package bfd

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A UDP port of a switch is not ours alone: the BFD daemon of its routing stack binds it too,
// to all addresses. The kernel delivers a datagram to the socket that is bound to its very
// destination before one that is bound to all, and with SO_REUSEADDR on both they stand beside
// each other in either order of start. Of two sockets with the same address the one that was
// bound last would get all: that is refused here, and reported when another process does it.

// Holders lists the UDP sockets of other processes on a port, in the network namespace of the
// calling thread. To look for the process of a socket costs tens of milliseconds where there are
// many processes: those of a list from before keep their owners.
func Holders(port uint16, before []Holder) ([]Holder, error) {
	list, err := readHolders("/proc/thread-self/net", port)
	if err != nil {
		return nil, err
	}
	own, _ := filepath.Glob("/proc/self/fd/*")
	ours := map[string]bool{}
	for _, fd := range own {
		to, _ := os.Readlink(fd)
		ours[to] = true
	}
	var others []Holder
	for _, h := range list {
		if ours[h.socket] {
			continue
		}
		if i := slices.IndexFunc(before, func(b Holder) bool { return b.socket == h.socket }); i >= 0 {
			h.Owner = before[i].Owner
		} else {
			h.name()
		}
		others = append(others, h)
	}
	return others, nil
}

// name finds the process of a socket; where the files of other users' processes are not shown
// (ProtectProc=, hidepid), the user has to do.
func (h *Holder) name() {
	h.Owner = "a process of user " + h.user
	if u, err := user.LookupId(h.user); err == nil {
		h.Owner = "a process of user " + u.Username
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || to != h.socket {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		if comm, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil {
			h.Owner = fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(comm)), pid)
			return
		}
	}
}

// readHolders reads the tables of both families; a kernel without IPv6 has one.
func readHolders(dir string, port uint16) ([]Holder, error) {
	var list []Holder
	for _, name := range []string{"udp", "udp6"} {
		f, err := os.Open(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sockets of this machine: %w", err)
		}
		some, err := parseHolders(f, port)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("sockets of this machine: %s: %w", f.Name(), err)
		}
		list = append(list, some...)
	}
	return list, nil
}

// parseHolders reads one table: local address and port are the second field, the user the
// eighth, the inode of the socket the tenth.
func parseHolders(r io.Reader, port uint16) (list []Holder, err error) {
	want := fmt.Sprintf(":%04X", port)
	s := bufio.NewScanner(r)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 10 || !strings.HasSuffix(f[1], want) {
			continue
		}
		raw, err := hex.DecodeString(strings.TrimSuffix(f[1], want))
		if err != nil || len(raw)%4 != 0 {
			return nil, fmt.Errorf("address %q", f[1])
		}
		for i := 0; i < len(raw); i += 4 { // words in the byte order of the machine
			binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
		}
		a, ok := netip.AddrFromSlice(raw)
		if _, err := strconv.ParseUint(f[9], 10, 64); !ok || err != nil {
			return nil, fmt.Errorf("address %q, inode %q", f[1], f[9])
		}
		list = append(list, Holder{Address: a.Unmap(), user: f[7], socket: "socket:[" + f[9] + "]"})
	}
	return list, s.Err()
}

// taken says who is in the way of binding an address: exact is one with the same address.
func taken(a netip.Addr, port uint16) (exact bool, who string) {
	list, err := Holders(port, nil)
	if err != nil {
		return false, err.Error()
	}
	var names []string
	for _, h := range list {
		if h.Address == a {
			return true, h.String()
		}
		if h.Address.IsUnspecified() || a.IsUnspecified() {
			names = append(names, h.String())
		}
	}
	return false, strings.Join(names, ", ")
}
