module hawser/golden

go 1.26.4

require (
	github.com/gopacket/gopacket v1.3.1
	github.com/scionproto/scion v0.15.1
)

require (
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.0 // indirect
)
