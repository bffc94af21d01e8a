// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Steps 2 and 3: the SCION header, and the application's port.

#pragma once

#include "outer.h"

union head {
	u8 bytes[HEAD_BYTES];
	u16 halves[HEAD_BYTES / 2];
	u32 words[HEAD_BYTES / 4];
};

// Where a SCION packet is, and what its header says. Offsets behind the first count from its first byte.
struct scion {
	u32 at;
	u32 room;        // Bytes that are there.
	int quoted;      // Inside an SCMP error: it may be cut short.
	union head head; // Its beginning.
	u32 bytes;       // The whole packet, by its own account.
	u32 upper_at;    // The UDP or SCMP header.
	u32 upper_bytes; // It, and what it carries.
	u32 source_at;   // The source host.
	u8 source_type;
	u8 protocol;
	u8 extensions;
};

// Bytes of a host by its type and length; 0 for one that is no IP address.
INLINE u32 host_bytes(u8 type)
{
	return type == HOST_IPV4 ? 4 : type == HOST_IPV6 ? 16 : 0;
}

// Step 2, for the header at scion->at. Why the packet is left alone, or GO_ON.
NOINLINE int read_scion(struct context *context, struct scion *scion)
{
	union head *head = &scion->head;
	u32 at = scion->at, room = scion->room;
	if (room < HEAD_BYTES || load_bytes(context, at, head, HEAD_BYTES))
		return LEFT_MALFORMED;
	u8 version = head->bytes[0] >> 4;
	u8 next = head->bytes[4];
	u32 header = head->bytes[5] * WORD;
	u32 payload = BE16(head->halves[3]);
	u8 path_type = head->bytes[8];
	u8 destination_type = head->bytes[9] >> 4;
	scion->source_type = head->bytes[9] & 15;
	scion->bytes = header + payload;
	u32 there = scion->quoted && scion->bytes > room ? room : scion->bytes;
	if (version != 0 || there > room || header > there)
		return LEFT_MALFORMED;

	u32 destination = host_bytes(destination_type);
	u32 source = host_bytes(scion->source_type);
	if (!destination || !source)
		return LEFT_ADDRESS;
	scion->source_at = HOSTS_AT + destination;
	u32 wanted = HOSTS_AT + destination + source;
	if (path_type == PATH_SCION) {
		u32 meta;
		if (wanted + PATH_META_BYTES > header || load_bytes(context, at + wanted, &meta, sizeof(meta)))
			return LEFT_MALFORMED;
		meta = __builtin_bswap32(meta);
		u32 first = meta >> 12 & 63, second = meta >> 6 & 63, third = meta & 63;
		// A segment is there only if those before it are.
		if (!first || (third && !second) || first + second + third > PATH_HOPS_MOST)
			return LEFT_MALFORMED;
		u32 segments = 1 + !!second + !!third;
		wanted += PATH_META_BYTES + segments * PATH_INFO_BYTES + (first + second + third) * PATH_HOP_BYTES;
	} else if (path_type != PATH_EMPTY) {
		return LEFT_PATH;
	}
	if (wanted != header)
		return LEFT_MALFORMED;

	scion->extensions = 0;
	u32 upper = header;
#pragma unroll
	for (int turn = 0; turn < 2; turn++) {
		u8 expected = turn ? NEXT_END_TO_END : NEXT_HOP_BY_HOP;
		if (next != expected)
			continue;
		u8 extension[2];
		if (upper + WORD > there || load_bytes(context, at + upper, extension, sizeof(extension)))
			return LEFT_MALFORMED;
		next = extension[0];
		upper += (extension[1] + 1) * WORD;
		scion->extensions = 1;
	}
	if (next == NEXT_HOP_BY_HOP || next == NEXT_END_TO_END)
		return LEFT_EXTENSION;
	if (next != PROTOCOL_UDP && next != NEXT_SCMP)
		return LEFT_PROTOCOL;
	if (upper + UPPER_BYTES > there)
		return LEFT_MALFORMED;
	scion->protocol = next;
	scion->upper_at = upper;
	scion->upper_bytes = there - upper;
	return GO_ON;
}

// Whether a host in a SCION header is the one that the outer header names.
INLINE int same_host(const u8 *address, const void *host, int is_ipv6)
{
	const u32 *a = (const u32 *)address, *b = host;
	if (!is_ipv6)
		return a[3] == b[0];
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

// Step 3 for an SCMP error: the port that the packet it quotes came from.
INLINE int target_of_quoted(struct context *context, const struct outer *outer, u32 at, u32 room, u16 *port)
{
	struct scion quoted = {.at = at, .room = room, .quoted = 1};
	u32 source[4];
	u16 upper[UPPER_BYTES / 2];
	// What cannot be read names nobody.
	if (read_scion(context, &quoted) != GO_ON)
		return LEFT_SCMP;
	if (quoted.source_type != (outer->is_ipv6 ? HOST_IPV6 : HOST_IPV4))
		return LEFT_ADDRESS;
	if (outer->is_ipv6 ? load_bytes(context, at + quoted.source_at, source, 16)
			   : load_bytes(context, at + quoted.source_at, source, 4))
		return LEFT_SCMP;
	if (!same_host(outer->destination, source, outer->is_ipv6))
		return LEFT_ADDRESS;
	if (load_bytes(context, at + quoted.upper_at, upper, UPPER_BYTES))
		return LEFT_SCMP;
	if (quoted.protocol == PROTOCOL_UDP) {
		*port = upper[0];
		return GO_ON;
	}
	u8 type = upper[0] & 255;
	*port = upper[2]; // The identifier of an echo or traceroute is the port it was sent from.
	if (type == SCMP_TRACEROUTE_REQUEST)
		return quoted.upper_bytes >= SCMP_TRACEROUTE_BYTES ? GO_ON : LEFT_SCMP;
	return type == SCMP_ECHO_REQUEST ? GO_ON : LEFT_SCMP;
}

// Step 3. The port is left in network order.
INLINE int target_of(struct context *context, const struct outer *outer, const struct scion *packet, u16 *port)
{
	u32 at = packet->at;
	u16 upper[UPPER_BYTES / 2];
	if (load_bytes(context, at + packet->upper_at, upper, UPPER_BYTES))
		return LEFT_MALFORMED;
	if (packet->protocol == PROTOCOL_UDP) {
		u32 datagram = BE16(upper[2]);
		*port = upper[1];
		return datagram >= UDP_BYTES && datagram <= packet->upper_bytes ? GO_ON : LEFT_MALFORMED;
	}
	u32 quote = SCMP_HEADER_BYTES;
	switch (upper[0] & 255) {
	case SCMP_ECHO_REPLY:
		*port = upper[2];
		return GO_ON;
	case SCMP_TRACEROUTE_REPLY:
		*port = upper[2];
		return packet->upper_bytes >= SCMP_TRACEROUTE_BYTES ? GO_ON : LEFT_SCMP;
	case SCMP_UNREACHABLE: // 4 bytes unused
	case SCMP_TOO_BIG:     // 2 unused, MTU
	case SCMP_PARAMETER:   // 2 unused, pointer
		quote += 4;
		break;
	case SCMP_INTERFACE_DOWN: // ISD-AS, interface
		quote += 16;
		break;
	case SCMP_CONNECTIVITY_DOWN: // ISD-AS, ingress, egress
		quote += 24;
		break;
	default:
		return LEFT_SCMP;
	}
	if (packet->upper_bytes < quote)
		return LEFT_SCMP;
	return target_of_quoted(context, outer, at + packet->upper_at + quote, packet->upper_bytes - quote, port);
}
