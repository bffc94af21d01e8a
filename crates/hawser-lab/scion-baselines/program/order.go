package main

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/scionproto/scion/pkg/snet"
	"github.com/scionproto/scion/pkg/snet/path"
)

// Order is what a program is told. Read from the command line once, and not changed.
type Order struct {
	// This end and the other: connection i takes its port plus i.
	local, remote *snet.UDPAddr
	connections   int
	// Packets: how long, of which payload, how many a second over all connections (0: as fast as it goes).
	duration time.Duration
	payload  int
	rate     float64
	// Threads of their own for system calls, and queues between.
	queues bool
	// The file that is sent or written.
	file string
	size int64
	// Ports that a host gets packets for directly; others by way of port 30041.
	firstPort, lastPort uint
	// The classic dispatcher's socket.
	dispatcher string
	// The border router of this end; none inside an AS.
	router *net.UDPAddr
}

func parseOrder(task string, words []string) (*Order, error) {
	var order Order
	var local, remote, rawPath, nextHop string
	flags := flag.NewFlagSet(task, flag.ContinueOnError)
	flags.StringVar(&local, "local", "", "this end: `ISD-AS,HOST:PORT`")
	flags.StringVar(&remote, "remote", "", "the other end: `ISD-AS,HOST:PORT`")
	flags.IntVar(&order.connections, "connections", 1, "connections, each with a port of its own")
	flags.DurationVar(&order.duration, "duration", 5*time.Second, "how long to send")
	flags.IntVar(&order.payload, "payload", 1200, "bytes of payload in a packet")
	flags.Float64Var(&order.rate, "rate", 0, "packets a second over all connections; 0 as fast as it goes")
	flags.BoolVar(&order.queues, "queues", false, "threads of their own for system calls, and queues between")
	flags.StringVar(&order.file, "file", "", "the file to send or to write")
	flags.Int64Var(&order.size, "size", 0, "bytes of the file to write")
	flags.UintVar(&order.firstPort, "first-port", 31000, "first port that packets come to directly")
	flags.UintVar(&order.lastPort, "last-port", 32767, "last port that packets come to directly")
	flags.StringVar(&order.dispatcher, "dispatcher", "", "socket of the classic dispatcher")
	flags.StringVar(&rawPath, "path", "", "the path as it stands in a packet, in hex; empty inside an AS")
	flags.StringVar(&nextHop, "next-hop", "", "this end's border router: `HOST:PORT`; none inside an AS")
	if err := flags.Parse(words); err != nil {
		return nil, err
	}
	if order.connections < 1 || order.payload < 1 {
		return nil, errors.New("read -connections and -payload: at least 1")
	}
	var err error
	if order.local, err = endpoint("local", local); err != nil {
		return nil, err
	}
	if nextHop != "" {
		if order.router, err = net.ResolveUDPAddr("udp", nextHop); err != nil {
			return nil, fmt.Errorf("read -next-hop: %w", err)
		}
	}
	if remote == "" {
		return &order, nil
	}
	if order.remote, err = endpoint("remote", remote); err != nil {
		return nil, err
	}
	return &order, order.setPath(rawPath)
}

func endpoint(name, text string) (*snet.UDPAddr, error) {
	address, err := snet.ParseUDPAddr(text)
	if err != nil {
		return nil, fmt.Errorf("read -%s: %w", name, err)
	}
	return address, nil
}

func (order *Order) setPath(raw string) error {
	if raw == "" {
		order.remote.Path = path.Empty{}
		return nil
	}
	bytes, err := hex.DecodeString(raw)
	if err != nil {
		return fmt.Errorf("read -path: %w", err)
	}
	if order.router == nil {
		return errors.New("read -path: it needs -next-hop")
	}
	order.remote.Path, order.remote.NextHop = path.SCION{Raw: bytes}, order.router
	return nil
}

// ends of connection number i.
func (order *Order) ends(i int) (local, remote *snet.UDPAddr) {
	local = order.local.Copy()
	local.Host.Port += i
	if order.remote != nil {
		remote = order.remote.Copy()
		remote.Host.Port += i
	}
	return local, remote
}
