// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What is on the line, outside in.

#pragma once

enum { // Ethernet (IEEE 802.3, 802.1Q), IP (RFC 791, RFC 8200), UDP (RFC 768).
	ETHERNET_BYTES = 14,
	VLAN_BYTES = 4,
	VLAN_TAGS_MOST = 2,
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	TYPE_SERVICE_VLAN = 0x88a8,
	IPV4_BYTES = 20,
	IPV4_WORDS_MOST = 15,
	IPV4_MORE_FRAGMENTS = 0x2000,
	IPV4_FRAGMENT_OFFSET = 0x1fff,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	PROTOCOL_UDP = 17,
};

enum { // SCION (scion-header.rst, scmp.rst).
	DISPATCHER_PORT = 30041,
	WORD = 4,              // HdrLen and extension lengths count words.
	COMMON_BYTES = 12,
	HOSTS_AT = 28,         // Behind the common header and two ISD-AS numbers.
	HEAD_BYTES = 44,       // The least SCION/UDP packet; a host of 16 bytes at HOSTS_AT ends here too.
	HOST_IPV4 = 0,         // Type 0, 4 bytes.
	HOST_IPV6 = 3,         // Type 0, 16 bytes.
	PATH_EMPTY = 0,
	PATH_SCION = 1,
	PATH_META_BYTES = 4,
	PATH_INFO_BYTES = 8,
	PATH_HOP_BYTES = 12,
	PATH_HOPS_MOST = 64,   // CurrHF has 6 bits.
	NEXT_HOP_BY_HOP = 200,
	NEXT_END_TO_END = 201,
	NEXT_SCMP = 202,
	UPPER_BYTES = 8,       // UDP's header, and the least SCMP message that names an application.
	SCMP_HEADER_BYTES = 4,
	SCMP_UNREACHABLE = 1,
	SCMP_TOO_BIG = 2,
	SCMP_PARAMETER = 4,
	SCMP_INTERFACE_DOWN = 5,
	SCMP_CONNECTIVITY_DOWN = 6,
	SCMP_ECHO_REQUEST = 128,
	SCMP_ECHO_REPLY = 129,
	SCMP_TRACEROUTE_REQUEST = 130,
	SCMP_TRACEROUTE_REPLY = 131,
	SCMP_TRACEROUTE_BYTES = 24,
};

// Packets in a train (linux/udp.h, UDP_MAX_SEGMENTS since Linux 6.9).
#define SEGMENTS_MOST 128
