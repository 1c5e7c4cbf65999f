// SPDX-License-Identifier: Apache-2.0
//
// The filter of hard zoning: it stands at the access ports and drops what two hosts send that
// may not talk. The same code is an XDP program (driver or generic) and a traffic control one.
//
// A sender is looked up to its number and ports, a receiver to its number, and both numbers to
// a permission: three lookups in hash tables, however many zones there are. Receivers and
// permissions are in rows of many neighbours each: 16 addresses that follow one another, and
// 16 x 16 pairs of numbers. What a switch looks up then stays in the processor's caches, which
// costs less than what the lookups themselves take. What these three have said is remembered for
// each pair of IPv4 addresses until any of the tables changes, so that most frames need one look
// into an array. What is not permitted is looked at again for exceptions, so that storage pays nothing
// for them.
//
// filter.o beside this file is made by `go generate` with Debian's clang; see generate.go.
// Its tables are those of tables.go, which checks their sizes.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL"; // what bpf_ktime_get_ns and the ring buffer ask for

// Set for each port before its program is loaded.
volatile const __u32 PORT = 0;

#define HOST_PORTS 8 // hardzone.MaxHostPorts

// Addresses are 16 bytes; IPv4 ones are mapped (::ffff:192.0.2.1).
struct addr {
	__u32 w[4];
};

// A host on a port here.
struct place {
	__u32 number;
	__u32 zone;
	__u16 ports[HOST_PORTS]; // 0: none
};

#define BLOCK 16 // addresses of a block: they differ in their last bits

// The numbers of hosts with these addresses, wherever they are; 0: none.
struct block {
	__u32 numbers[BLOCK];
};

#define TILE 16 // a tile has the pairs of so many numbers with so many

struct tile_key {
	__u32 low, high; // numbers / TILE
};

#define MIXED 0xffffffff // tile.zone: each pair has a row in zones

struct tile {
	__u32 zone;		       // of all its pairs
	__u32 bits[TILE * TILE / 32]; // pair (l, h): bit (l % TILE) * TILE + h % TILE
};

struct pair {
	__u32 low, high;
};

struct permit {
	__u8 protocol;
	__u8 zero;
	__u16 port; // 0: any; network byte order
};

struct prefix {
	__u32 bits;
	struct addr addr;
};

struct bound {
	__u16 ports[HOST_PORTS];
};

#define LINK 2 // frame.multicast

enum { OFF, ON };		  // settings.mode
enum { DROP, APART, PASS };	  // settings.unlearned
enum { DISCOVERY_PASS, DISCOVERY_PAIRS }; // settings.discovery

struct settings {
	__u32 mode;
	__u32 unlearned;
	__u32 discovery;
	__u32 version;	  // of this layout
	__u64 sample_gap; // ns between samples of a processor; 0: none
	__u32 edition;	  // of the tables: another one after each change
	__u32 zero;
};

// What becomes of a frame: the index into counts.
enum verdict { PASSED, PERMITTED, OTHER, NO_PAIR, BAD_SOURCE, UNLEARNED, MALFORMED, VERDICTS };
#define DROPPED(v) ((v) >= NO_PAIR)

struct counts {
	__u64 n[8];
};

struct zone_counts {
	__u64 passed, denied;
};

// What the tables said of a pair of IPv4 addresses that may talk, while they were of one edition.
struct flow {
	__u64 pair; // source, destination
	__u64 said; // edition, port (16 bits), the zone's counter (16 bits)
};

#define SEAT 4
#define SEAT_BITS 12
#define SEATS (1 << SEAT_BITS) // of each processor, which alone uses them
#define NO_ZONE 0xffff	       // has no counter

// The flows that have one place: what the processor reads at once.
struct seat {
	struct flow flows[SEAT];
};

struct sample {
	__u64 at; // ns since boot
	__u32 port;
	__u32 verdict;
	struct addr src, dst;
	__u16 sport, dport; // host byte order; 0: none, or a later fragment
	__u8 protocol;
	__u8 discovery;
	__u16 zero;
};

// Each kind of address has tables of its own: a key of 4 bytes costs less than one of 16.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct place);
} places4 SEC(".maps"); // network byte order

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 14);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct addr);
	__type(value, struct place);
} places6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 17);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct block);
} blocks4 SEC(".maps"); // without the last bits

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 17);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct addr);
	__type(value, struct block);
} blocks6 SEC(".maps"); // without the last bits

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 20);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct tile_key);
	__type(value, struct tile);
} tiles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pair);
	__type(value, __u32);
} zones SEC(".maps"); // of pairs in tiles that are MIXED

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEATS); // of one processor
	__type(key, __u32);
	__type(value, struct seat);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 10);
	__type(key, struct permit);
	__type(value, __u32);
} permits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1 << 10);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1 << 12);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, struct bound);
} bounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1025); // as ports
	__type(key, __u32);
	__type(value, struct counts);
} port_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4097); // hardzone.ZoneCounters and those without one
	__type(key, __u32);
	__type(value, struct zone_counts);
} zone_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} last_sample SEC(".maps");

// What a frame says.
struct frame {
	struct addr src, dst;
	__u32 zone;	     // of a pair that may talk: its counter
	__u32 l4;	     // offset of what follows the IP header; 0: there is nothing to be read
	__u16 sport, dport;  // once they were read; host byte order
	__u8 protocol;
	__u8 multicast;	     // or broadcast; LINK: it stays on the link
	__u8 later;	     // fragment: it has addresses and no ports
	__u8 extended;	     // IPv6: at l4 may be an extension header
	__u8 discovery;	     // ARP or Neighbor Discovery: src and dst are whom it is about
	__u8 six;	     // the addresses are of IPv6
};

#define ETH_P_IP 0x0800
#define ETH_P_ARP 0x0806
#define ETH_P_IPV6 0x86DD
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88A8
#define ETH_P_ROCE 0x8915 // RoCE version 1: its GRH has the form of an IPv6 header

struct eth {
	__u8 dst[6], src[6];
	__u16 type;
} __attribute__((packed));

struct vlan {
	__u16 tci, type;
};

struct ipv4 {
	__u8 version_len, tos;
	__u16 total, id, frag;
	__u8 ttl, protocol;
	__u16 sum;
	__u32 src, dst;
};

struct ipv6 {
	__u32 flow;
	__u16 len;
	__u8 next, hops;
	struct addr src, dst;
};

struct arp {
	__u16 hardware, protocol;
	__u8 hardware_len, protocol_len;
	__u16 op;
	__u8 sender_mac[6];
	__u8 sender[4];
	__u8 target_mac[6];
	__u8 target[4];
} __attribute__((packed));

static __always_inline void map4(struct addr *a, __u32 v4)
{
	a->w[0] = a->w[1] = 0;
	a->w[2] = bpf_htonl(0xffff);
	a->w[3] = v4;
}

static __always_inline _Bool same(const struct addr *a, const struct addr *b)
{
	return a->w[0] == b->w[0] && a->w[1] == b->w[1] && a->w[2] == b->w[2] && a->w[3] == b->w[3];
}

static __always_inline _Bool on_port(const __u16 *ports)
{
#pragma unroll
	for (int i = 0; i < HOST_PORTS; i++)
		if (ports[i] == (__u16)PORT)
			return 1;
	return 0;
}

static __always_inline void count_zone(__u32 zone, _Bool passed)
{
	struct zone_counts *z = bpf_map_lookup_elem(&zone_counts, &zone);

	if (!z)
		return;
	if (passed)
		z->passed++;
	else
		z->denied++;
}

static __always_inline int load(void *ctx, _Bool xdp, __u32 at, void *to, __u32 len)
{
	return xdp ? bpf_xdp_load_bytes(ctx, at, to, len) : bpf_skb_load_bytes(ctx, at, to, len);
}

// behind_extensions walks over the extension headers of IPv6 (RFC 8200 clause 4).
static __always_inline void behind_extensions(void *ctx, _Bool xdp, struct frame *f)
{
	__u32 at = f->l4;
	__u8 h[8];

	f->l4 = 0;
#pragma unroll
	for (int i = 0; i < 6; i++) {
		__u32 len = 8;

		switch (f->protocol) {
		case 0: case 43: case 44: case 51: case 60:
			break;
		default:
			f->l4 = at;
			return;
		}
		if (load(ctx, xdp, at, h, sizeof(h)))
			return;
		if (f->protocol == 44) { // fragment
			if ((h[2] << 8 | h[3]) & 0xfff8)
				f->later = 1;
		} else if (f->protocol == 51) { // authentication
			len = ((__u32)h[1] + 2) * 4;
		} else { // hop by hop, routing, destination options
			len = ((__u32)h[1] + 1) * 8;
		}
		f->protocol = h[0];
		at += len;
		if (f->later) // what follows is no header
			return;
	}
}

// read_ports reads what is behind the IP header, as far as it is there.
static __always_inline void read_ports(void *ctx, _Bool xdp, struct frame *f)
{
	__u16 ports[2];

	if (f->sport || f->dport || f->discovery)
		return;
	if (f->extended) {
		f->extended = 0;
		behind_extensions(ctx, xdp, f);
	}
	if (f->later || !f->l4 || (f->protocol != 6 && f->protocol != 17))
		return;
	if (load(ctx, xdp, f->l4, ports, sizeof(ports)))
		return;
	f->sport = bpf_ntohs(ports[0]);
	f->dport = bpf_ntohs(ports[1]);
}

static __always_inline _Bool has_permit(__u8 protocol, __u16 port)
{
	struct permit k = {.protocol = protocol, .port = bpf_htons(port)};

	return bpf_map_lookup_elem(&permits, &k) != 0;
}

// exempt reports whether a frame is of what passes whoever sends it.
static __always_inline _Bool exempt(void *ctx, _Bool xdp, struct frame *f)
{
	struct prefix k = {.bits = 128};

	k.addr = f->dst;
	if (bpf_map_lookup_elem(&prefixes, &k))
		return 1;
	k.addr = f->src;
	if (bpf_map_lookup_elem(&prefixes, &k))
		return 1;
	if (f->discovery)
		return 0;
	read_ports(ctx, xdp, f);
	if (f->protocol != 6 && f->protocol != 17)
		return has_permit(f->protocol, 0);
	if (!f->dport)
		return 0;
	if (has_permit(f->protocol, f->dport))
		return 1;
	// The way back: to a port that a client takes, which is no storage port.
	return f->dport >= 32768 && has_permit(f->protocol, f->sport);
}

// number gives that of a host; 0: there is none with this address.
static __always_inline __u32 number(const struct addr *a, _Bool six)
{
	__u32 last = bpf_ntohl(a->w[3]) % BLOCK;
	struct addr k = *a;
	struct block *b;

	k.w[3] &= bpf_htonl(~(BLOCK - 1));
	b = six ? bpf_map_lookup_elem(&blocks6, &k) : bpf_map_lookup_elem(&blocks4, &k.w[3]);
	return b ? b->numbers[last] : 0;
}

// may_talk reports whether a pair has a row, and finds its counter.
static __always_inline _Bool may_talk(__u32 a, __u32 b, __u32 *counter)
{
	struct pair p = {.low = a < b ? a : b, .high = a < b ? b : a};
	struct tile_key k = {.low = p.low / TILE, .high = p.high / TILE};
	struct tile *t = bpf_map_lookup_elem(&tiles, &k);
	__u32 bit = p.low % TILE * TILE + p.high % TILE, zone, *exact;

	if (!t || !(t->bits[bit / 32] >> bit % 32 & 1))
		return 0;
	zone = t->zone;
	if (zone == MIXED) {
		exact = bpf_map_lookup_elem(&zones, &p);
		zone = exact ? *exact : 0;
	}
	*counter = zone;
	return 1;
}

static __always_inline int judge(void *ctx, _Bool xdp, struct frame *f)
{
	struct place *from;
	struct settings *s;
	struct bound *b;
	struct addr src = f->src; // on the stack: before Linux 6.3 no other place may have a key
	__u32 zero = 0, to;

	from = f->six ? bpf_map_lookup_elem(&places6, &src) : bpf_map_lookup_elem(&places4, &src.w[3]);
	if (from && on_port(from->ports)) {
		to = number(&f->dst, f->six);
		if (!to)
			goto outside;
		f->zone = NO_ZONE;
		if (from->number == to || may_talk(from->number, to, &f->zone))
			return PASSED;
		if (exempt(ctx, xdp, f))
			return PERMITTED;
		count_zone(from->zone, 0);
		return NO_PAIR;
	}
	if (from || number(&f->src, f->six)) // of another port, or elsewhere
		return BAD_SOURCE;

	struct prefix p = {.bits = 128, .addr = f->src};

	b = bpf_map_lookup_elem(&bounds, &p);
	if (b && !on_port(b->ports))
		return BAD_SOURCE;
outside:
	if (f->multicast == LINK || (from && f->multicast))
		return PERMITTED;
	if (exempt(ctx, xdp, f))
		return PERMITTED;
	s = bpf_map_lookup_elem(&settings, &zero);
	if (!s || s->unlearned == PASS)
		return PERMITTED;
	if (s->unlearned == APART && !from && !number(&f->dst, f->six))
		return PERMITTED;
	if (from)
		count_zone(from->zone, 0);
	return UNLEARNED;
}

static __always_inline void tell(void *ctx, _Bool xdp, struct frame *f, int verdict, __u64 gap)
{
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&last_sample, &zero), now;
	struct sample *s;

	if (!gap || !last)
		return;
	now = bpf_ktime_get_ns();
	if (now - *last < gap)
		return;
	read_ports(ctx, xdp, f);
	s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);
	if (!s)
		return;
	*last = now;
	s->at = now;
	s->port = PORT;
	s->verdict = verdict;
	s->src = f->src;
	s->dst = f->dst;
	s->sport = f->sport;
	s->dport = f->dport;
	s->protocol = f->protocol;
	s->discovery = f->discovery;
	s->zero = 0;
	bpf_ringbuf_submit(s, 0);
}

// These are functions of their own, so that the kernel checks each once and not on every way
// through the headers.
__noinline int judge_xdp(struct xdp_md *ctx, struct frame *f)
{
	return f ? judge(ctx, 1, f) : MALFORMED;
}

__noinline int judge_tc(struct __sk_buff *ctx, struct frame *f)
{
	return f ? judge(ctx, 0, f) : MALFORMED;
}

__noinline int tell_xdp(struct xdp_md *ctx, struct frame *f, int verdict, __u64 gap)
{
	if (f)
		tell(ctx, 1, f, verdict, gap);
	return 0;
}

__noinline int tell_tc(struct __sk_buff *ctx, struct frame *f, int verdict, __u64 gap)
{
	if (f)
		tell(ctx, 0, f, verdict, gap);
	return 0;
}

#define JUDGE VERDICTS // it is not decided by its headers alone

// discovery gives what becomes of ARP and Neighbor Discovery. What is said to all, or to somebody who asked
// without an address, as this switch does, is said of the source alone.
static __always_inline int discovery(struct frame *f, const struct settings *s, int to_all)
{
	struct addr none = {}, none4;

	if (s->discovery == DISCOVERY_PASS)
		return OTHER;
	map4(&none4, 0);
	if (same(&f->src, &none) || same(&f->src, &none4)) // looks whether an address is free
		return OTHER;
	f->multicast = to_all || same(&f->src, &f->dst) || same(&f->dst, &none4) ? LINK : 0; // it says where it is
	f->discovery = 1;
	return JUDGE;
}

static __always_inline int ip4(struct frame *f, void *at, void *data, void *end)
{
	struct ipv4 *ip = at;
	__u32 len;

	if ((void *)(ip + 1) > end || ip->version_len >> 4 != 4)
		return MALFORMED;
	len = (ip->version_len & 15) * 4;
	if (len < sizeof(*ip))
		return MALFORMED;
	map4(&f->src, ip->src);
	map4(&f->dst, ip->dst);
	f->protocol = ip->protocol;
	f->later = (ip->frag & bpf_htons(0x1fff)) != 0;
	if ((ip->dst & bpf_htonl(0xffffff00)) == bpf_htonl(0xe0000000)) // 224.0.0.0/24
		f->multicast = LINK;
	else
		f->multicast = (ip->dst & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) || ip->dst == 0xffffffff;
	f->l4 = at - data + len;
	return JUDGE;
}

static __always_inline int ip6(struct frame *f, void *at, void *data, void *end, const struct settings *s)
{
	struct ipv6 *ip = at;
	__u8 *icmp = at + sizeof(*ip);

	if ((void *)(ip + 1) > end || (bpf_ntohl(ip->flow) >> 28) != 6)
		return MALFORMED;
	f->six = 1;
	f->src = ip->src;
	f->dst = ip->dst;
	f->protocol = ip->next;
	if ((ip->dst.w[0] & bpf_htonl(0xffff0000)) == bpf_htonl(0xff020000)) // link-local scope
		f->multicast = LINK;
	else
		f->multicast = (ip->dst.w[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
	f->l4 = at - data + sizeof(*ip);
	f->extended = 1;
	if (ip->next != 58 || ip->hops != 255 || (void *)(icmp + 8) > end)
		return JUDGE;
	switch (icmp[0]) {
	case 133: case 134: case 137: // about routers
		return OTHER;
	case 135: case 136: // about the target (RFC 4861 clause 4.3)
		if ((void *)(icmp + 24) > end)
			return MALFORMED;
		__builtin_memcpy(icmp[0] == 135 ? &f->dst : &f->src, icmp + 8, 16);
		return discovery(f, s, icmp[0] == 136 && f->multicast == LINK);
	}
	return JUDGE;
}

static __always_inline int arp(struct frame *f, void *at, void *end, const struct settings *s)
{
	struct arp *a = at;
	__u32 v4;

	if ((void *)(a + 1) > end || a->protocol != bpf_htons(ETH_P_IP) || a->hardware_len != 6 || a->protocol_len != 4)
		return s->discovery == DISCOVERY_PASS ? OTHER : MALFORMED;
	__builtin_memcpy(&v4, a->sender, 4);
	map4(&f->src, v4);
	__builtin_memcpy(&v4, a->target, 4);
	map4(&f->dst, v4);
	return discovery(f, s, 0);
}

static __always_inline int look(struct frame *f, void *data, void *end, const struct settings *s)
{
	struct eth *eth = data;
	void *at = eth + 1;
	__u16 type;

	if (at > end)
		return MALFORMED;
	type = eth->type;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct vlan *v = at;

		if (type != bpf_htons(ETH_P_8021Q) && type != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(v + 1) > end)
			return MALFORMED;
		type = v->type;
		at = v + 1;
	}
	switch (type) {
	case bpf_htons(ETH_P_IP):
		return ip4(f, at, data, end);
	case bpf_htons(ETH_P_IPV6):
	case bpf_htons(ETH_P_ROCE):
		return ip6(f, at, data, end, s);
	case bpf_htons(ETH_P_ARP):
		return arp(f, at, end, s);
	case bpf_htons(ETH_P_8021Q): // a third tag would hide what it carries
	case bpf_htons(ETH_P_8021AD):
		return MALFORMED;
	}
	return OTHER;
}

// seat_of gives the seat of a pair of addresses, with the rows where it may be remembered.
static __always_inline struct seat *seat_of(const struct frame *f)
{
	__u64 h = f->src.w[3] * 0x9e3779b97f4a7c15;
	__u32 at;

	h ^= h >> 32; // else the last byte of an address would be in the first bits alone
	h = (h + f->dst.w[3]) * 0xbf58476d1ce4e5b9;
	at = bpf_get_smp_processor_id() * SEATS + (h >> (64 - SEAT_BITS));
	return bpf_map_lookup_elem(&flows, &at);
}

// decide gives what becomes of a frame with addresses. What the tables say is remembered under
// the edition that was there before they were looked at: should one change meanwhile, the next
// frame of the pair sees another edition and looks again. Frames of one processor come one
// after the other, and no other one uses its rows.
static __always_inline int decide(void *ctx, _Bool xdp, struct frame *f, const struct settings *s)
{
	__u64 pair = (__u64)f->src.w[3] << 32 | f->dst.w[3], said = (__u64)s->edition << 32 | PORT << 16, ordered = 0;
	struct seat *seat = f->six ? 0 : seat_of(f);
	struct flow *w;
	int verdict;

	if (seat) {
#pragma unroll
		for (int i = 0; i < SEAT; i++) {
			w = &seat->flows[i];
			if (w->pair == pair && w->said >> 16 == said >> 16) {
				count_zone(w->said & 0xffff, 1);
				return PASSED;
			}
		}
	}
	said |= __sync_fetch_and_or(&ordered, 0); // 0, and no lookup is done before it
	verdict = xdp ? judge_xdp(ctx, f) : judge_tc(ctx, f);
	if (verdict != PASSED)
		return verdict;
	count_zone(f->zone, 1);
	if (!seat)
		return PASSED;
	w = &seat->flows[0];
#pragma unroll
	for (int i = 1; i < SEAT; i++) // the place of what is good no longer
		if (w->said >> 32 == said >> 32 && seat->flows[i].said >> 32 != said >> 32)
			w = &seat->flows[i];
	if (w->said >> 32 == said >> 32) { // there is none: that of the first, which others follow
#pragma unroll
		for (int i = 0; i < SEAT - 1; i++)
			seat->flows[i] = seat->flows[i + 1];
		w = &seat->flows[SEAT - 1];
	}
	w->pair = pair;
	w->said = said | (f->zone & 0xffff);
	return PASSED;
}

// passes judges a frame and counts it.
static __always_inline _Bool passes(void *ctx, _Bool xdp, void *data, void *end)
{
	__u32 zero = 0, port = PORT, verdict;
	struct settings *s = bpf_map_lookup_elem(&settings, &zero);
	struct frame f = {};
	struct counts *c;

	if (!s || s->mode == OFF)
		return 1;
	verdict = look(&f, data, end, s);
	if (verdict == JUDGE)
		verdict = decide(ctx, xdp, &f, s);
	c = bpf_map_lookup_elem(&port_counts, &port);
	if (c)
		c->n[verdict & 7]++;
	if (!DROPPED(verdict))
		return 1;
	if (xdp)
		tell_xdp(ctx, &f, verdict, s->sample_gap);
	else
		tell_tc(ctx, &f, verdict, s->sample_gap);
	return 0;
}

SEC("xdp.frags")
int zone_xdp(struct xdp_md *ctx)
{
	return passes(ctx, 1, (void *)(long)ctx->data, (void *)(long)ctx->data_end) ? XDP_PASS : XDP_DROP;
}

SEC("tc")
int zone_tc(struct __sk_buff *skb)
{
	const __u32 most = 128; // headers that are read
	__u32 there = skb->data_end - skb->data;

	if (there < most && there < skb->len) // else there is nothing to be made readable
		bpf_skb_pull_data(skb, skb->len < most ? skb->len : most);
	return passes(skb, 0, (void *)(long)skb->data, (void *)(long)skb->data_end) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}
