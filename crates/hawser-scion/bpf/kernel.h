// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the kernel offers to a program (linux/bpf.h). No header of the system is used, so that the object depends on the files
// here and the compiler alone.

#pragma once

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the object is for little-endian processors"
#endif

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define BE16(value) __builtin_bswap16(value)

// struct xdp_md.
struct context {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

// What loaders know as struct bpf_map_def.
struct map {
	u32 type;
	u32 key_size;
	u32 value_size;
	u32 max_entries;
	u32 flags;
};

// struct bpf_sock_tuple.
union tuple {
	struct {
		u32 source, destination;
		u16 source_port, destination_port;
	} v4;
	struct {
		u8 source[16], destination[16];
		u16 source_port, destination_port;
	} v6;
};

// struct bpf_fib_lookup.
struct route {
	u8 family;
	u8 protocol;
	u16 source_port, destination_port;
	u16 length; // 0: no look at the MTU.
	u32 interface;
	u32 traffic_class;
	u8 source[16], destination[16];
	u8 result[16];
};

enum { XDP_PASS = 2 };
enum { MAP_HASH = 1, MAP_PERCPU_ARRAY = 6, MAP_NO_PREALLOC = 1 };
enum { FIB_NOT_FORWARDED = 4, FIB_FORWARDING_DISABLED = 5 };
enum { AF_INET = 2, AF_INET6 = 10 };
#define OWN_NAMESPACE (-1ll) // BPF_F_CURRENT_NETNS

static void *(*const map_lookup)(const void *map, const void *key) = (void *)1;
static long (*const fib_lookup)(struct context *, struct route *, int size, u32 flags) = (void *)69;
static void *(*const socket_lookup_udp)(struct context *, union tuple *, u32 size, u64 namespace, u64 flags) = (void *)85;
static long (*const socket_release)(void *socket) = (void *)86;
static u64 (*const packet_length)(struct context *) = (void *)188;
static long (*const load_bytes)(struct context *, u32 at, void *to, u32 length) = (void *)189;
