package main

import (
	"context"
	"errors"
	"net"

	"github.com/scionproto/scion/pkg/addr"
	"github.com/scionproto/scion/pkg/snet"
	"github.com/scionproto/scion/pkg/sock/reliable"
)

// rawConn is a connection's socket, for those who serialise by themselves. One owner a direction.
type rawConn struct {
	*net.UDPConn
}

// listen registers with the dispatcher: all packets go through its Unix socket, as up to v0.11.
func (order *Order) listen(local *snet.UDPAddr) (*snet.Conn, error) {
	if order.dispatcher == "" {
		return nil, errors.New("open a connection: -dispatcher is needed")
	}
	network := &snet.SCIONNetwork{
		LocalIA: order.local.IA,
		Dispatcher: &snet.DefaultPacketDispatcherService{
			Dispatcher: reliable.NewDispatcher(order.dispatcher),
		},
	}
	return network.Listen(context.Background(), "udp", local.Host, addr.SvcNone)
}

// listenRaw is not for this version: a dispatcher's socket is not UDP.
func (order *Order) listenRaw(*snet.UDPAddr) (rawConn, error) {
	return rawConn{}, errors.New("open a socket for whole packets: the classic dispatcher has none")
}

// nextHop is who takes packets to remote: its border router or, inside an AS, its dispatcher.
func (order *Order) nextHop(remote *snet.UDPAddr) *net.UDPAddr {
	if remote.NextHop != nil {
		return remote.NextHop
	}
	return &net.UDPAddr{IP: remote.Host.IP, Port: endhostPort}
}
