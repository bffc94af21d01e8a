// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What is shared with the loader (src/xdp/layout.rs).

#pragma once

#include "kernel.h"

// What is counted, and so what became of a packet. All are counted as such, so that its number serves for those undecided.
enum count {
	COUNT_PACKETS,
	COUNT_FORWARDED,
	LEFT_OUTER,     // IPv4 options, or a fragment
	LEFT_MALFORMED, // versions or lengths that do not fit
	LEFT_ADDRESS,   // not addressed to the host that the outer header names
	LEFT_PATH,      // neither an empty path nor a SCION path
	LEFT_EXTENSION, // extensions doubled or out of order
	LEFT_PROTOCOL,  // neither UDP nor SCMP
	LEFT_SCMP,      // SCMP that names no application, such as an echo request
	LEFT_PORT,      // not on the whitelist
	LEFT_TRANSIT,   // on the whitelist for every address of this host, but for another host
	LEFT_SOCKET,    // on the whitelist, but no socket is open
	LEFT_TRAIN,     // a super-packet for more than one port
	COUNTS,
	NOT_SCION = COUNTS,
	GO_ON = COUNT_PACKETS,
};

// A port of an address, both in network order; IPv4 as ::ffff:a.b.c.d. An address of zeros is every one of that family.
struct key {
	u8 address[16];
	u16 port;
	u16 zero;
};

// Who put it there: a process and a number of its own. Only the other side reads it.
struct entry {
	u32 process;
	u32 lease;
};
