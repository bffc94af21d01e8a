package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// Name of the protocol in the TLS handshake: any, as long as both say the same.
	protocol = "hawser-bench"
	// Bytes of a QUIC packet: what fits an AS MTU of 1472 behind the longest SCION header of the bench's paths.
	quicPacket = 1320
	// Bytes that may be under way on a connection: what Hawser's own transfer allows.
	window = 16 << 20
	// Bytes handed on at once.
	chunk = 256 << 10
)

// sendFile sends one piece of the file over each connection.
func sendFile(order *Order) (Report, error) {
	if order.remote == nil {
		return Report{}, errors.New("-remote is needed")
	}
	file, err := os.Open(order.file)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	state, err := file.Stat()
	if err != nil {
		return Report{}, err
	}
	order.size = state.Size()
	ready()
	return order.together(func(i int) (count, error) {
		return order.sendPiece(i, file)
	})
}

// receiveFile takes one piece of the file from each connection.
func receiveFile(order *Order) (Report, error) {
	file, err := os.OpenFile(order.file, os.O_RDWR, 0)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	listeners := make([]*quic.Listener, order.connections)
	for i := range listeners {
		local, _ := order.ends(i)
		conn, err := order.listen(local)
		if err != nil {
			return Report{}, err
		}
		config, err := serverTLS()
		if err != nil {
			return Report{}, err
		}
		transport := quic.Transport{Conn: conn}
		if listeners[i], err = transport.Listen(config, quicConfig()); err != nil {
			return Report{}, err
		}
	}
	ready()
	return order.together(func(i int) (count, error) {
		return order.receivePiece(i, listeners[i], file)
	})
}

// piece of the file that connection i carries: where it begins and how long it is.
func (order *Order) piece(i int) (offset, length int64) {
	begin := order.size * int64(i) / int64(order.connections)
	end := order.size * int64(i+1) / int64(order.connections)
	return begin, end - begin
}

func (order *Order) sendPiece(i int, file *os.File) (count, error) {
	local, remote := order.ends(i)
	socket, err := order.listen(local)
	if err != nil {
		return count{}, err
	}
	done := count{first: time.Now(), cpuFirst: cpu()}
	transport := quic.Transport{Conn: socket}
	conn, err := transport.Dial(context.Background(), remote, clientTLS(), quicConfig())
	if err != nil {
		return done, fmt.Errorf("connect: %w", err)
	}
	stream, err := conn.OpenUniStreamSync(context.Background())
	if err != nil {
		return done, fmt.Errorf("open a stream: %w", err)
	}
	offset, length := order.piece(i)
	sent, err := io.CopyBuffer(bare{stream}, io.NewSectionReader(file, offset, length), make([]byte, chunk))
	if err != nil {
		return done, fmt.Errorf("send: %w", err)
	}
	if err := stream.Close(); err != nil {
		return done, fmt.Errorf("end the stream: %w", err)
	}
	// The receiver closes when it has all of it.
	<-conn.Context().Done()
	done.last, done.cpuLast = time.Now(), cpu()
	done.packets, done.bytes = conn.ConnectionStats().PacketsSent, uint64(sent)
	var closed *quic.ApplicationError
	if !errors.As(context.Cause(conn.Context()), &closed) || closed.ErrorCode != 0 {
		return done, fmt.Errorf("wait for the receiver: %w", context.Cause(conn.Context()))
	}
	return done, nil
}

func (order *Order) receivePiece(i int, listener *quic.Listener, file *os.File) (count, error) {
	conn, err := listener.Accept(context.Background())
	if err != nil {
		return count{}, fmt.Errorf("accept a connection: %w", err)
	}
	done := count{first: time.Now(), cpuFirst: cpu()}
	stream, err := conn.AcceptUniStream(context.Background())
	if err != nil {
		return done, fmt.Errorf("accept a stream: %w", err)
	}
	offset, length := order.piece(i)
	got, err := io.CopyBuffer(io.NewOffsetWriter(file, offset), stream, make([]byte, chunk))
	if err != nil {
		return done, fmt.Errorf("receive: %w", err)
	}
	if got != length {
		return done, fmt.Errorf("receive: %d bytes of %d", got, length)
	}
	done.last, done.cpuLast = time.Now(), cpu()
	done.packets, done.bytes = conn.ConnectionStats().PacketsReceived, uint64(got)
	if err := conn.CloseWithError(0, ""); err != nil {
		return done, fmt.Errorf("close: %w", err)
	}
	// The last datagram leaves before the process does.
	<-conn.Context().Done()
	time.Sleep(lastWords)
	return done, nil
}

// How long a closed connection's last datagram may take to leave.
const lastWords = 100 * time.Millisecond

// bare hides ReadFrom and the like: the copy goes by chunks.
type bare struct{ io.Writer }

func quicConfig() *quic.Config {
	return &quic.Config{
		InitialPacketSize:              quicPacket,
		DisablePathMTUDiscovery:        true,
		InitialStreamReceiveWindow:     window,
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
		MaxIdleTimeout:                 30 * time.Second,
	}
}

// serverTLS has a key made for this run; nobody checks it.
func serverTLS() (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, public, private)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}}, nil
}

func clientTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, ServerName: protocol}
}
