package main

// The thesis' "multi-thread" form: one goroutine makes the system calls, the caller's serialises or parses, and a
// bounded queue lies between.

import (
	"net"

	"github.com/scionproto/scion/pkg/addr"
	"github.com/scionproto/scion/pkg/snet"
)

// Packets that a queue holds.
const queueLength = 1024

// openQueuedWriter blocks its caller while the queue is full.
func (order *Order) openQueuedWriter(local, remote *snet.UDPAddr) (writer, error) {
	socket, err := order.listenRaw(local)
	if err != nil {
		return nil, err
	}
	nextHop := order.nextHop(remote)
	full, empty := make(chan []byte, queueLength), make(chan []byte, queueLength)
	for range queueLength {
		empty <- make([]byte, largestPacket)
	}
	go func() {
		for packet := range full {
			// What is lost here, the receiver misses.
			_, _ = socket.WriteToUDP(packet, nextHop)
			empty <- packet
		}
	}()
	from, to := hostAddress(local), hostAddress(remote)
	return func(payload []byte) error {
		packet := snet.Packet{Bytes: <-empty, PacketInfo: snet.PacketInfo{
			Destination: to,
			Source:      from,
			Path:        remote.Path,
			Payload: snet.UDPPayload{
				SrcPort: uint16(local.Host.Port), DstPort: uint16(remote.Host.Port), Payload: payload,
			},
		}}
		if err := packet.Serialize(); err != nil {
			return err
		}
		full <- packet.Bytes
		return nil
	}, nil
}

// openQueuedReader drops packets only where the socket's own buffer is full.
func (order *Order) openQueuedReader(local *snet.UDPAddr) (reader, func() error, error) {
	socket, err := order.listenRaw(local)
	if err != nil {
		return nil, nil, err
	}
	full, empty := make(chan []byte, queueLength), make(chan []byte, queueLength)
	for range queueLength {
		empty <- make([]byte, largestPacket)
	}
	go func() {
		defer close(full)
		for buffer := range empty {
			length, _, err := socket.ReadFromUDP(buffer[:cap(buffer)])
			if err != nil {
				return
			}
			full <- buffer[:length]
		}
	}()
	read := func(into []byte) (int, error) {
		for bytes := range full {
			packet := snet.Packet{Bytes: bytes}
			err := packet.Decode()
			udp, ok := packet.Payload.(snet.UDPPayload)
			length := copy(into, udp.Payload)
			empty <- bytes
			if err == nil && ok {
				return length, nil
			}
		}
		return 0, net.ErrClosed
	}
	return read, socket.Close, nil
}

func hostAddress(end *snet.UDPAddr) snet.SCIONAddress {
	return snet.SCIONAddress{IA: end.IA, Host: addr.HostIP(end.Host.AddrPort().Addr().Unmap())}
}
