// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Step 1: the headers outside of SCION's.

#pragma once

#include "kernel.h"
#include "layout.h"
#include "wire.h"

// What the outer headers say. Addresses are as in struct key.
struct outer {
	u8 source[16];
	u8 destination[16];
	u16 source_port; // In network order.
	u8 is_ipv6;
	u32 udp_at;
	u32 payload; // Bytes behind the UDP header.
};

INLINE void map_ipv4(u8 *to, u32 address)
{
	u32 *words = (u32 *)to;
	words[0] = words[1] = 0;
	words[2] = 0xffff0000;
	words[3] = address;
}

INLINE void copy_ipv6(u8 *to, const void *from)
{
	__builtin_memcpy(to, from, 16);
}

// Step 1. Why the packet is left alone, or GO_ON.
INLINE int read_outer(struct context *context, struct outer *outer)
{
	void *data = (void *)(u64)context->data;
	void *end = (void *)(u64)context->data_end;
	u16 *type = data + ETHERNET_BYTES - sizeof(u16);
	void *ip = data + ETHERNET_BYTES;

#pragma unroll
	for (int tags = 0; tags < VLAN_TAGS_MOST; tags++) {
		if (ip > end)
			return NOT_SCION;
		if (*type != BE16(TYPE_VLAN) && *type != BE16(TYPE_SERVICE_VLAN))
			break;
		type = ip + sizeof(u16);
		ip += VLAN_BYTES;
	}
	if (ip > end)
		return NOT_SCION;

	u32 length; // Of what IP carries.
	u8 *udp;
	int special = 0;
	u8 *bytes = ip;
	u16 *halves = ip;
	u32 *words = ip;
	if (*type == BE16(TYPE_IPV4)) {
		if (ip + IPV4_BYTES > end || bytes[0] >> 4 != 4 || bytes[9] != PROTOCOL_UDP)
			return NOT_SCION;
		u32 header = (bytes[0] & IPV4_WORDS_MOST) * WORD;
		u32 total = BE16(halves[1]);
		u16 fragment = BE16(halves[3]);
		// Only a first fragment has ports.
		if (header < IPV4_BYTES || total < header || fragment & IPV4_FRAGMENT_OFFSET)
			return NOT_SCION;
		special = header != IPV4_BYTES || fragment & IPV4_MORE_FRAGMENTS;
		length = total - header;
		map_ipv4(outer->source, words[3]);
		map_ipv4(outer->destination, words[4]);
		outer->is_ipv6 = 0;
		udp = bytes + header;
	} else if (*type == BE16(TYPE_IPV6)) {
		if (ip + IPV6_BYTES > end || bytes[0] >> 4 != 6 || bytes[6] != PROTOCOL_UDP)
			return NOT_SCION;
		length = BE16(halves[2]);
		copy_ipv6(outer->source, bytes + 8);
		copy_ipv6(outer->destination, bytes + 24);
		outer->is_ipv6 = 1;
		udp = bytes + IPV6_BYTES;
	} else {
		return NOT_SCION;
	}

	u16 *ports = (u16 *)udp;
	if ((void *)udp + UDP_BYTES > end || ports[1] != BE16(DISPATCHER_PORT))
		return NOT_SCION;
	if (special)
		return LEFT_OUTER;
	u32 datagram = BE16(ports[2]);
	outer->source_port = ports[0];
	outer->udp_at = (void *)udp - data;
	if (datagram < UDP_BYTES || datagram > length || outer->udp_at + datagram > packet_length(context))
		return LEFT_MALFORMED;
	outer->payload = datagram - UDP_BYTES;
	return GO_ON;
}
