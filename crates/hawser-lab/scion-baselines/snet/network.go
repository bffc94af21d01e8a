package main

import (
	"context"
	"net"
	"net/netip"

	"github.com/scionproto/scion/pkg/snet"
)

// rawConn is a connection's socket, for those who serialise by themselves. One owner a direction.
type rawConn struct {
	*net.UDPConn
}

// network of the host, as snet of v0.12 and later sees it.
func (order *Order) network() *snet.SCIONNetwork {
	return &snet.SCIONNetwork{Topology: snet.Topology{
		LocalIA:   order.local.IA,
		PortRange: snet.TopologyPortRange{Start: uint16(order.firstPort), End: uint16(order.lastPort)},
		// Whom to answer by when the dispatcher forwarded a packet: there is one border router.
		Interface: func(uint16) (netip.AddrPort, bool) {
			if order.router == nil {
				return netip.AddrPort{}, false
			}
			return order.router.AddrPort(), true
		},
	}}
}

// listen opens a connection's socket.
func (order *Order) listen(local *snet.UDPAddr) (*snet.Conn, error) {
	network := order.network()
	socket, err := network.OpenRaw(context.Background(), local.Host)
	if err != nil {
		return nil, err
	}
	if err := socket.(*snet.SCIONPacketConn).SetReadBuffer(socketBuffer); err != nil {
		return nil, err
	}
	return snet.NewCookedConn(socket, network.Topology)
}

// listenRaw opens a connection's socket for whole SCION packets.
func (order *Order) listenRaw(local *snet.UDPAddr) (rawConn, error) {
	socket, err := net.ListenUDP("udp", local.Host)
	if err != nil {
		return rawConn{}, err
	}
	return rawConn{socket}, socket.SetReadBuffer(socketBuffer)
}

// nextHop is who takes packets to remote: its border router or, inside an AS, itself or its shim.
func (order *Order) nextHop(remote *snet.UDPAddr) *net.UDPAddr {
	if remote.NextHop != nil {
		return remote.NextHop
	}
	port := remote.Host.Port
	if uint(port) < order.firstPort || uint(port) > order.lastPort {
		port = endhostPort
	}
	return &net.UDPAddr{IP: remote.Host.IP, Port: port}
}
