// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The dispatcher bypass. A SCION packet comes to a host's dispatcher port, and the dispatcher hands it to the application whose
// port its inner header names. This program does that before the kernel sees the packet: it changes the outer destination port.
//
// 1. read_outer(): Ethernet, up to two VLAN tags, IPv4 or IPv6, UDP to the dispatcher's port. Anything else goes on at once.
// 2. read_scion(): the SCION header, up to the header behind it. Its destination must be the host that the outer header
//    names, so that nothing is sent elsewhere.
// 3. target_of(): the application's port: where UDP goes, or the port of the packet that an SCMP message answers.
// 4. train(): a super-packet has one outer header for many SCION packets, and all of them must be for that port.
// 5. admitted(): the port is on the whitelist, and a socket of this host is open on it.
// 6. forward(): the new port, and the checksum by RFC 1624. Nothing behind the outer UDP header is changed.
//
// Whatever does not fit is left as it is, for the dispatcher, and counted by its reason. No packet is ever dropped.

#include "scion.h"

SECTION("maps") struct map WHITELIST = {
	.type = MAP_HASH,
	.key_size = sizeof(struct key),
	.value_size = sizeof(struct entry),
	.max_entries = 4096,
	.flags = MAP_NO_PREALLOC,
};

SECTION("maps") struct map COUNTERS = {
	.type = MAP_PERCPU_ARRAY,
	.key_size = sizeof(u32),
	.value_size = sizeof(u64),
	.max_entries = COUNTS,
};

// Step 4: whether all SCION packets behind the first have its shape and its port.
NOINLINE int train(struct context *context, const struct outer *outer, const struct scion *packet, u16 port)
{
	const union head *first = &packet->head;
	u32 at = packet->at;
	if (packet->protocol != PROTOCOL_UDP || packet->extensions)
		return LEFT_TRAIN;
	u32 done = packet->bytes;
	for (int segment = 1; segment < SEGMENTS_MOST; segment++) {
		if (done == outer->payload)
			return GO_ON;
		u32 left = outer->payload - done;
		u32 bytes = left < packet->bytes ? left : packet->bytes;
		union head head;
		u16 ports[2];
		if (left < HEAD_BYTES || load_bytes(context, at + done, &head, HEAD_BYTES))
			return LEFT_TRAIN;
		if (head.bytes[0] >> 4 || head.halves[2] != first->halves[2] || head.halves[4] != first->halves[4])
			return LEFT_TRAIN;
		if (head.bytes[5] * WORD + BE16(head.halves[3]) != bytes || packet->upper_at + UDP_BYTES > bytes)
			return LEFT_TRAIN;
		if (!same_host(outer->destination, head.bytes + HOSTS_AT, outer->is_ipv6))
			return LEFT_TRAIN;
		if (load_bytes(context, at + done + packet->upper_at, ports, sizeof(ports)) || ports[1] != port)
			return LEFT_TRAIN;
		done += bytes;
	}
	return done == outer->payload ? GO_ON : LEFT_TRAIN;
}

// Whether the packet is for this host, and not for one behind it.
INLINE int is_ours(struct context *context, const struct outer *outer, u16 port)
{
	struct route route = {
		.family = outer->is_ipv6 ? AF_INET6 : AF_INET,
		.protocol = PROTOCOL_UDP,
		.source_port = outer->source_port,
		.destination_port = port,
		.interface = context->ingress_ifindex,
	};
	if (outer->is_ipv6) {
		copy_ipv6(route.source, outer->source);
		copy_ipv6(route.destination, outer->destination);
	} else {
		*(u32 *)route.source = ((const u32 *)outer->source)[3];
		*(u32 *)route.destination = ((const u32 *)outer->destination)[3];
	}
	long fate = fib_lookup(context, &route, sizeof(route), 0);
	return fate == FIB_NOT_FORWARDED || fate == FIB_FORWARDING_DISABLED;
}

// Whether the kernel would find a socket for the packet.
INLINE int is_open(struct context *context, const struct outer *outer, u16 port)
{
	union tuple tuple = {};
	u32 size;
	if (outer->is_ipv6) {
		copy_ipv6(tuple.v6.source, outer->source);
		copy_ipv6(tuple.v6.destination, outer->destination);
		tuple.v6.source_port = outer->source_port;
		tuple.v6.destination_port = port;
		size = sizeof(tuple.v6);
	} else {
		tuple.v4.source = ((const u32 *)outer->source)[3];
		tuple.v4.destination = ((const u32 *)outer->destination)[3];
		tuple.v4.source_port = outer->source_port;
		tuple.v4.destination_port = port;
		size = sizeof(tuple.v4);
	}
	void *socket = socket_lookup_udp(context, &tuple, size, OWN_NAMESPACE, 0);
	if (!socket)
		return 0;
	socket_release(socket);
	return 1;
}

// Step 5. The socket table is the kernel's own: what an application left behind when it died forwards nothing.
INLINE int admitted(struct context *context, const struct outer *outer, u16 port)
{
	struct key key = {.port = port};
	copy_ipv6(key.address, outer->destination);
	if (!map_lookup(&WHITELIST, &key)) {
		if (outer->is_ipv6)
			__builtin_memset(key.address, 0, 16);
		else
			map_ipv4(key.address, 0);
		if (!map_lookup(&WHITELIST, &key))
			return LEFT_PORT;
		if (!is_ours(context, outer, port))
			return LEFT_TRANSIT;
	}
	return is_open(context, outer, port) ? GO_ON : LEFT_SOCKET;
}

// Step 6. A sum of 0 means that there is none (RFC 768). A sender's kernel may have left the sum to hardware that is not there
// (CHECKSUM_PARTIAL): then the receiver does not look at it, and the change does no harm.
INLINE int forward(struct context *context, u32 udp_at, u16 port)
{
	void *data = (void *)(u64)context->data;
	void *end = (void *)(u64)context->data_end;
	u16 *udp = data + (udp_at & 127);
	if ((void *)udp + UDP_BYTES > end)
		return LEFT_MALFORMED;
	if (udp[3]) {
		// RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). The order of bytes does not matter to it (RFC 1071, section 2).
		u32 sum = (u16)~udp[3] + (u32)(u16)~udp[1] + port;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		u16 check = ~sum;
		udp[3] = check ? check : 0xffff;
	}
	udp[1] = port;
	return COUNT_FORWARDED;
}

// The steps in their order; what becomes of the packet.
INLINE int decide(struct context *context)
{
	struct outer outer;
	u16 port = 0;
	int fate = read_outer(context, &outer);
	if (fate != GO_ON)
		return fate;
	struct scion packet = {.at = outer.udp_at + UDP_BYTES, .room = outer.payload};
	if ((fate = read_scion(context, &packet)) != GO_ON)
		return fate;
	u8 family = outer.is_ipv6 ? HOST_IPV6 : HOST_IPV4;
	const u8 *head = packet.head.bytes;
	if (head[9] >> 4 != family || !same_host(outer.destination, head + HOSTS_AT, outer.is_ipv6))
		return LEFT_ADDRESS;
	if ((fate = target_of(context, &outer, &packet, &port)) != GO_ON)
		return fate;
	if (packet.bytes != outer.payload && (fate = train(context, &outer, &packet, port)) != GO_ON)
		return fate;
	if ((fate = admitted(context, &outer, port)) != GO_ON)
		return fate;
	return forward(context, outer.udp_at, port);
}

INLINE void count(u32 which)
{
	u64 *counter = map_lookup(&COUNTERS, &which);
	if (counter)
		*counter += 1;
}

SECTION("xdp.frags") int dispatch(struct context *context)
{
	int fate = decide(context);
	count(COUNT_PACKETS);
	if (fate != NOT_SCION)
		count(fate);
	return XDP_PASS;
}

// GPL: the kernel asks for it where routes are looked up.
SECTION("license") char LICENSE[] = "GPL";
