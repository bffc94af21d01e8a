package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// Receive buffer of a socket in bytes: what Hawser asks for as well.
	socketBuffer = 4 << 20
	// Where dispatcher and shim listen. Source: SCION's well-known end host port.
	endhostPort = 30041
	// Bytes of the largest packet that is read. Source: common.SupportedMTU of snet.
	largestPacket = 9216 - 20 - 8
	// How long a paced sender sleeps at least, and so the length of a burst.
	tick = 500 * time.Microsecond
)

// writer sends one payload, reader takes one and says how long it was.
type writer func(payload []byte) error
type reader func(buffer []byte) (int, error)

// count is what one connection did. Owned by its goroutine until that ends.
type count struct {
	packets, bytes uint64
	first, last    time.Time
	cpuFirst       time.Duration
	cpuLast        time.Duration
}

// send packets over all connections for the time asked for.
func send(order *Order) (Report, error) {
	if order.remote == nil {
		return Report{}, errors.New("-remote is needed")
	}
	writers := make([]writer, order.connections)
	for i := range writers {
		var err error
		if writers[i], err = order.openWriter(i); err != nil {
			return Report{}, err
		}
	}
	ready()
	return order.together(func(i int) (count, error) {
		return order.sendOn(writers[i])
	})
}

// receive packets over all connections until told to end.
func receive(order *Order) (Report, error) {
	readers := make([]reader, order.connections)
	closers := make([]func() error, order.connections)
	for i := range readers {
		var err error
		if readers[i], closers[i], err = order.openReader(i); err != nil {
			return Report{}, err
		}
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ends
		for _, closer := range closers {
			closer()
		}
	}()
	ready()
	return order.together(func(i int) (count, error) {
		return receiveOn(readers[i]), nil
	})
}

// together runs one goroutine a connection, and adds up what they did.
func (order *Order) together(one func(i int) (count, error)) (Report, error) {
	counts := make([]count, order.connections)
	faults := make([]error, order.connections)
	var all sync.WaitGroup
	for i := range counts {
		all.Add(1)
		go func() {
			defer all.Done()
			counts[i], faults[i] = one(i)
		}()
	}
	all.Wait()
	return add(counts), errors.Join(faults...)
}

func add(counts []count) Report {
	var sum count
	for _, one := range counts {
		if one.packets == 0 {
			continue
		}
		sum.packets += one.packets
		sum.bytes += one.bytes
		if sum.first.IsZero() || one.first.Before(sum.first) {
			sum.first, sum.cpuFirst = one.first, one.cpuFirst
		}
		if one.last.After(sum.last) {
			sum.last, sum.cpuLast = one.last, one.cpuLast
		}
	}
	return Report{
		Packets:         sum.packets,
		Bytes:           sum.bytes,
		Seconds:         sum.last.Sub(sum.first).Seconds(),
		CPUMicroseconds: (sum.cpuLast - sum.cpuFirst).Microseconds(),
	}
}

func (order *Order) openWriter(i int) (writer, error) {
	local, remote := order.ends(i)
	if order.queues {
		return order.openQueuedWriter(local, remote)
	}
	conn, err := order.listen(local)
	if err != nil {
		return nil, err
	}
	return func(payload []byte) error {
		_, err := conn.WriteTo(payload, remote)
		return err
	}, nil
}

func (order *Order) openReader(i int) (reader, func() error, error) {
	local, _ := order.ends(i)
	if order.queues {
		return order.openQueuedReader(local)
	}
	conn, err := order.listen(local)
	if err != nil {
		return nil, nil, err
	}
	read := func(buffer []byte) (int, error) {
		length, _, err := conn.ReadFrom(buffer)
		return length, err
	}
	return read, conn.Close, nil
}

func (order *Order) sendOn(write writer) (count, error) {
	payload := make([]byte, order.payload)
	rate := order.rate / float64(order.connections)
	done := count{first: time.Now(), cpuFirst: cpu()}
	for now := done.first; now.Sub(done.first) < order.duration; now = time.Now() {
		due := uint64(now.Sub(done.first).Seconds()*rate) + 1
		if rate > 0 && done.packets >= due {
			time.Sleep(tick)
			continue
		}
		if err := write(payload); err != nil {
			return done, fmt.Errorf("send a packet: %w", err)
		}
		done.packets++
		done.bytes += uint64(order.payload)
	}
	done.last, done.cpuLast = time.Now(), cpu()
	return done, nil
}

// receiveOn ends with the reader: a closed connection is how it is told to.
func receiveOn(read reader) count {
	var done count
	buffer := make([]byte, largestPacket)
	for {
		length, err := read(buffer)
		if err != nil {
			return done
		}
		done.packets++
		done.bytes += uint64(length)
		done.note()
	}
}

// How many packets lie between two looks at the clocks: the first is always seen, the last nearly.
const look = 64

func (done *count) note() {
	if done.packets == 1 {
		done.first, done.cpuFirst = time.Now(), cpu()
		done.last, done.cpuLast = done.first, done.cpuFirst
	} else if done.packets%look == 0 {
		done.last, done.cpuLast = time.Now(), cpu()
	}
}
