// What the SCION bench compares with: programs over snet, the reference implementation's library.
//
//  1. `send` and `receive`: packets of one size, as fast as it goes or at a rate, over one or several connections
//     (blast.go), or with threads and queues of their own (queues.go).
//  2. `send-file` and `receive-file`: a file over QUIC (file.go).
//
// The network below them is snet of v0.15 (../snet) or snet of v0.11 over the dispatcher's Unix socket (../classic): each
// has a go.mod of its own, and is built with this folder's files beside it. Paths come from the command line: no daemon
// is asked.
// A program says `ready` when its peer may start, and at its end one line of JSON: what it did and what that cost.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Report is what a program did. Plain data; JSON on standard output.
type Report struct {
	// Packets and payload bytes, of all connections.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// From the first packet to the last.
	Seconds float64 `json:"seconds"`
	// Processor time from the first packet to the last.
	CPUMicroseconds int64 `json:"cpu_us"`
}

func main() {
	// What receives has the buffer it needs; quic-go looks for a *net.UDPConn.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("say what to do: send, receive, send-file or receive-file")
	}
	order, err := parseOrder(words[0], words[1:])
	if err != nil {
		return err
	}
	tasks := map[string]func(*Order) (Report, error){
		"send": send, "receive": receive, "send-file": sendFile, "receive-file": receiveFile,
	}
	task, ok := tasks[words[0]]
	if !ok {
		return fmt.Errorf("do %q: no such task", words[0])
	}
	report, err := task(order)
	if err != nil {
		return fmt.Errorf("%s: %w", words[0], err)
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// ready tells whoever started us that the peer may start.
func ready() {
	fmt.Println("ready")
}

// cpu is the processor time of this process so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // the only faults are a bad pointer and a bad constant
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
