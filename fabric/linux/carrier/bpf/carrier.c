// SPDX-License-Identifier: Apache-2.0
//
// Where the kernel notices that a carrier is gone, or back.
//
// netif_carrier_off() and netif_carrier_on() set the bit of an interface, count the change, and call
// linkwatch_fire_event(), which leaves it to a work queue to tell netlink (net/sched/sch_generic.c,
// net/core/link_watch.c). All drivers go this way, in whatever context they learn of it: an
// interrupt, a work item of phylink, or the closing of the other end of a veth. So this program
// stands at the entry of linkwatch_fire_event(): the bit and the counts are those of after the change.
//
// Where the kernel lets no program stand there, one stands at the tracepoint that the work item of
// linkwatch passes when it is queued, and looks at all ports. That is as early, but what linkwatch
// holds back passes no tracepoint.
//
// They change nothing and wait for nothing. What they say is an early word about one network
// namespace; whether it counts, their reader decides.
//
// carrier.o beside this file is made by `go generate` with Debian's clang; see generate.go.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define OF_THE_KERNEL __attribute__((preserve_access_index))

typedef struct {
	int counter;
} OF_THE_KERNEL atomic_t;

struct ns_common {
	unsigned int inum;
} OF_THE_KERNEL;

struct net {
	struct ns_common ns;
} OF_THE_KERNEL;

typedef struct {
	struct net *net;
} OF_THE_KERNEL possible_net_t;

struct net_device {
	unsigned long state;
	int ifindex;
	atomic_t carrier_up_count, carrier_down_count;
	possible_net_t nd_net;
} OF_THE_KERNEL;

enum netdev_state_t { __LINK_STATE_START, __LINK_STATE_PRESENT, __LINK_STATE_NOCARRIER };

struct sk_buff {
	struct net_device *dev;
} OF_THE_KERNEL;

struct work_struct {
	void *func;
} OF_THE_KERNEL;

// Set before loading.
const volatile __u32 space; // inode of the network namespace of the ports
const volatile __u64 handler; // address of linkwatch_event(), for the tracepoint

struct word {
	__u64 at; // CLOCK_MONOTONIC, ns
	__u32 index;
	__u32 changes; // of carrier that the interface has had, as in IFLA_CARRIER_CHANGES
	__u8 carrier; // whether it has one
	__u8 running; // whether it is open: not while an operator shuts it
	__u8 pad[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024); // 1600 words
} words SEC(".maps");

struct port {
	__u64 dev; // its struct net_device, for the tracepoint
	__u32 changes; // when it was looked at last
	__u32 pad;
};

// The ports, by index.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

// How many words found no room.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline __u32 count(struct net_device *dev)
{
	return (__u32)BPF_CORE_READ(dev, carrier_up_count.counter) + (__u32)BPF_CORE_READ(dev, carrier_down_count.counter);
}

static __always_inline void say(struct net_device *dev, __u32 index)
{
	struct word *w = bpf_ringbuf_reserve(&words, sizeof *w, 0);
	if (!w) {
		__u32 zero = 0;
		__u64 *n = bpf_map_lookup_elem(&lost, &zero);
		if (n)
			__sync_fetch_and_add(n, 1);
		return;
	}
	unsigned long state = BPF_CORE_READ(dev, state);
	__builtin_memset(w, 0, sizeof *w);
	w->at = bpf_ktime_get_ns();
	w->index = index;
	w->changes = count(dev);
	w->carrier = !(state >> bpf_core_enum_value(enum netdev_state_t, __LINK_STATE_NOCARRIER) & 1);
	w->running = state >> bpf_core_enum_value(enum netdev_state_t, __LINK_STATE_START) & 1;
	bpf_ringbuf_submit(w, BPF_RB_FORCE_WAKEUP);
}

static __always_inline int fired(struct net_device *dev)
{
	__u32 index = BPF_CORE_READ(dev, ifindex);
	if (BPF_CORE_READ(dev, nd_net.net, ns.inum) == space && bpf_map_lookup_elem(&ports, &index))
		say(dev, index);
	return 0;
}

SEC("fentry/linkwatch_fire_event")
int entry(unsigned long long *ctx)
{
	return fired((struct net_device *)ctx[0]);
}

// Where the kernel has no fentry, a probe; ctx is its struct pt_regs.
SEC("kprobe/linkwatch_fire_event")
int probe_amd64(unsigned long *ctx)
{
	return fired((struct net_device *)ctx[14]); // di
}

SEC("kprobe/linkwatch_fire_event")
int probe_arm64(unsigned long *ctx)
{
	return fired((struct net_device *)ctx[0]); // regs[0]
}

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

// Is run once for each port, so that the next program knows its struct net_device.
SEC("tc")
int learn(struct __sk_buff *ctx)
{
	__u32 index = ctx->ifindex;
	struct port *p = bpf_map_lookup_elem(&ports, &index);
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	struct net_device *dev = BPF_CORE_READ(skb, dev);
	if (!p)
		return 1;
	p->changes = count(dev);
	p->dev = (__u64)dev;
	return 0;
}

// An interface that is gone since shows another index or namespace, or no change.
static long look(void *map, __u32 *index, struct port *p, void *ctx)
{
	struct net_device *dev = (struct net_device *)p->dev;
	if (!dev || BPF_CORE_READ(dev, ifindex) != *index || BPF_CORE_READ(dev, nd_net.net, ns.inum) != space)
		return 0;
	__u32 now = count(dev);
	if (now != p->changes) {
		p->changes = now;
		say(dev, *index);
	}
	return 0;
}

// int req_cpu, struct pool_workqueue *pwq, struct work_struct *work
SEC("raw_tp/workqueue_queue_work")
int queued(unsigned long long *ctx)
{
	struct work_struct *work = (struct work_struct *)ctx[2];
	if ((__u64)BPF_CORE_READ(work, func) == handler)
		bpf_for_each_map_elem(&ports, look, 0, 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
