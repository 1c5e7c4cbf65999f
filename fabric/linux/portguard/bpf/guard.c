// SPDX-License-Identifier: Apache-2.0
//
// The guard stands at ingress and egress of each access port (traffic control: TCX, or cls_bpf at
// clsact). At a switch it drops LLDP and SNSD frames that would pass from a host, or from the
// fabric, to another host. Everywhere it drops the frames of blocked pairs of addresses, and of
// blocked ports, until the time in their rows, also when the process that wrote them is dead.
//
// Packet sockets bound to all protocols read a frame before the ingress program, those bound to one
// EtherType after it and after the bridge. So what is addressed to this switch passes at ingress.
// The egress program runs before the port's queue: frames that wait there already still leave.
//
// guard.o beside this file is made by `go generate` with Debian's clang; see generate.go. Its maps
// are those of maps.go, which checks their sizes.

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

// Set before the program is loaded. At an array's own interface its address is the source of what
// leaves; behind a switch's port, of what comes in.
volatile const __u32 AT_ARRAY = 0;

// A block: frames between two addresses at an interface; all zero: everything.
struct key {
	__u32 port; // interface index
	__u32 array[4], host[4]; // IPv4 mapped (::ffff:192.0.2.1)
};

struct block {
	__u64 since, until; // CLOCK_BOOTTIME, ns
	__u64 dropped;
	char port[16]; // its name, for the next process
};

struct port {
	__u64 in, out; // frames that were forbidden
	__u8 src[6];   // of the last one
	__u16 type;    // of the last one, host byte order
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct key);
	__type(value, struct block);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 12);
	__type(key, __u32); // interface index
	__type(value, struct port);
} ports SEC(".maps");

// The time at which the last block ends: without one, a frame costs no look into a hash table.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} latest SEC(".maps");

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88A8
#define ETH_P_NTS 0x88A7
#define ETH_P_LLDP 0x88CC
#define ETH_P_ROCE 0x8915 // RoCE version 1: its GRH has the form of an IPv6 header
#define MAX_TAGS 4	  // in the frame; one more may have been taken off by the driver

struct vlan {
	__u16 tci, type;
};

#define PACKET_HOST 0

// to_switch reports whether an untagged frame is addressed to this switch: LLDP to the nearest bridge,
// SNSD to its group or the port's own address. The other two groups of LLDP (IEEE 802.1AB clause 7.1)
// are not among them: a Linux bridge without STP forwards the nearest customer bridge's.
static __always_inline _Bool to_switch(struct __sk_buff *skb, const __u8 *dst, __u16 type)
{
	if (type == ETH_P_NTS && skb->pkt_type == PACKET_HOST)
		return 1;
	if (dst[0] != 0x01 || dst[1] != 0x80 || dst[2] != 0xc2 || dst[3] || dst[4])
		return 0;
	return dst[5] == (type == ETH_P_NTS ? 0x0d : 0x0e);
}

static __always_inline int forbid(struct __sk_buff *skb, _Bool egress, const __u8 *src, __u16 type)
{
	__u32 port = skb->ifindex;
	struct port *p = bpf_map_lookup_elem(&ports, &port);

	if (p) {
		__sync_fetch_and_add(egress ? &p->out : &p->in, 1);
		__builtin_memcpy(p->src, src, 6);
		p->type = type;
	}
	return TC_ACT_SHOT;
}

static __always_inline _Bool blocked(struct key *k, __u64 now)
{
	struct block *b = bpf_map_lookup_elem(&blocks, k);

	if (!b || now >= b->until)
		return 0;
	__sync_fetch_and_add(&b->dropped, 1);
	return 1;
}

static __always_inline int guard(struct __sk_buff *skb, _Bool egress)
{
	_Bool source = egress == (AT_ARRAY != 0); // the array is the source
	__u32 at = 14, zero = 0, addrs[8];
	struct key k = {.port = skb->ifindex};
	_Bool tagged = skb->vlan_present && (skb->vlan_tci & 0xfff);
	__u64 *until, now;
	__u8 eth[14];
	__u16 type;

	if (bpf_skb_load_bytes(skb, 0, eth, sizeof(eth)))
		return TC_ACT_UNSPEC;
	type = eth[12] << 8 | eth[13];
#pragma unroll
	for (int i = 0; i < MAX_TAGS; i++) {
		struct vlan v;

		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		if (bpf_skb_load_bytes(skb, at, &v, sizeof(v)))
			return TC_ACT_SHOT; // a tag and nothing behind it
		tagged |= (v.tci & bpf_htons(0xfff)) != 0;
		type = bpf_ntohs(v.type);
		at += sizeof(v);
	}
	if (type == ETH_P_LLDP || type == ETH_P_NTS) {
		if (AT_ARRAY || (egress ? !skb->ingress_ifindex : !tagged && to_switch(skb, eth, type)))
			return TC_ACT_UNSPEC;
		return forbid(skb, egress, eth + 6, type);
	}
	if (!AT_ARRAY && (type == ETH_P_8021Q || type == ETH_P_8021AD))
		return forbid(skb, egress, eth + 6, type); // a further tag would hide what it carries

	until = bpf_map_lookup_elem(&latest, &zero);
	if (!until || !*until)
		return TC_ACT_UNSPEC;
	now = bpf_ktime_get_boot_ns();
	if (now >= *until)
		return TC_ACT_UNSPEC;
	if (blocked(&k, now))
		return TC_ACT_SHOT;
	switch (type) {
	case ETH_P_IP:
		addrs[0] = addrs[1] = addrs[4] = addrs[5] = 0;
		addrs[2] = addrs[6] = bpf_htonl(0xffff);
		if (bpf_skb_load_bytes(skb, at + 12, &addrs[3], 4) || bpf_skb_load_bytes(skb, at + 16, &addrs[7], 4))
			return TC_ACT_UNSPEC;
		break;
	case ETH_P_IPV6:
	case ETH_P_ROCE:
		if (bpf_skb_load_bytes(skb, at + 8, addrs, sizeof(addrs)))
			return TC_ACT_UNSPEC;
		break;
	default:
		return TC_ACT_UNSPEC;
	}
	__builtin_memcpy(source ? k.array : k.host, addrs, 16);
	__builtin_memcpy(source ? k.host : k.array, addrs + 4, 16);
	return blocked(&k, now) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

SEC("tc")
int guard_in(struct __sk_buff *skb)
{
	return guard(skb, 0);
}

SEC("tc")
int guard_out(struct __sk_buff *skb)
{
	return guard(skb, 1);
}
