// Writes packets of the reference encoder, and what was put into them, as JSON on stdout.
//
//  1. Every path (none, and one to three segments, some of them peering ones, at several hops) is paired with every
//     combination of IPv4 and IPv6 hosts.
//  2. Each pair carries UDP of several lengths, and two SCMP messages, in turn of every type.
//  3. The packet is serialised by pkg/slayers, and its path reversed.
//  4. With -seeds DIR, short packets are written there too, one a file, for the fuzzer to begin with.
//
// Numbers come from a fixed seed, so that the same program writes the same file.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/gopacket/gopacket"

	"github.com/scionproto/scion/pkg/addr"
	"github.com/scionproto/scion/pkg/slayers"
	"github.com/scionproto/scion/pkg/slayers/path"
	"github.com/scionproto/scion/pkg/slayers/path/empty"
	"github.com/scionproto/scion/pkg/slayers/path/scion"
)

const (
	seed = 20260101
	// Bytes of a packet inside an AS, of which the largest payload is what the headers leave.
	mtu = 1472
	// Bytes of an SCMP message's tail in the vectors, at most.
	maxQuote = 600
	// Bytes that UDP's length can tell, without its header.
	maxUDP = 65527
	// Bytes of a packet that the fuzzer begins with, at most.
	maxSeed = 400
)

// A packet: what was asked for, what came out. Its tail (payload, quote or data) is told by length and seed: see pattern.
type vector struct {
	SourceAS        string `json:"source_as"`
	SourceHost      string `json:"source_host"`
	DestinationAS   string `json:"destination_as"`
	DestinationHost string `json:"destination_host"`
	TrafficClass    uint8  `json:"traffic_class"`
	FlowID          uint32 `json:"flow_id"`
	Path            string `json:"path"`
	Reversed        string `json:"reversed"`
	UDP             *udp   `json:"udp,omitempty"`
	SCMP            *scmp  `json:"scmp,omitempty"`
	TailLen         int    `json:"tail_len"`
	TailSeed        uint8  `json:"tail_seed"`
	Headers         string `json:"headers"`
}

type udp struct {
	SourcePort      uint16 `json:"source_port"`
	DestinationPort uint16 `json:"destination_port"`
}

type scmp struct {
	Type    uint8  `json:"type"`
	Code    uint8  `json:"code"`
	Number  uint16 `json:"number"`
	ID      uint16 `json:"id"`
	Seq     uint16 `json:"seq"`
	AS      string `json:"as"`
	Ingress uint16 `json:"ingress"`
	Egress  uint16 `json:"egress"`
}

// A path before it is serialised: nil is the empty one.
type shape struct {
	segments []int
	peering  bool
	current  int
}

var shapes = []*shape{
	nil,
	{segments: []int{2}},
	{segments: []int{2}, current: 1},
	{segments: []int{5}, current: 4},
	{segments: []int{1, 1}, peering: true},
	{segments: []int{1, 1}, peering: true, current: 1},
	{segments: []int{3, 2}, current: 2},
	{segments: []int{3, 2}, current: 4},
	{segments: []int{2, 2}, peering: true, current: 3},
	{segments: []int{2, 2, 2}},
	{segments: []int{2, 3, 4}, current: 3},
	{segments: []int{2, 3, 4}, current: 8},
	{segments: []int{4, 1, 3}, current: 4},
	{segments: []int{21, 21, 22}, current: 63},
}

var lengths = []int{0, 1, 7, 1200, mtu, maxUDP}

func main() {
	seeds := flag.String("seeds", "", "a folder for short packets")
	flag.Parse()
	rng := rand.New(rand.NewSource(seed))
	var vectors []vector
	messages := 0
	for _, form := range shapes {
		for hosts := range 4 {
			for _, length := range lengths {
				vectors = append(vectors, build(rng, form, hosts, &length, nil))
			}
			for range 2 {
				vectors = append(vectors, build(rng, form, hosts, nil, message(rng, messages)))
				messages++
			}
		}
	}
	write(vectors)
	if *seeds != "" {
		writeSeeds(*seeds, vectors)
	}
}

func build(rng *rand.Rand, form *shape, hosts int, length *int, control *scmp) vector {
	v := vector{
		SourceAS: as(rng), SourceHost: host(rng, hosts&1 != 0),
		DestinationAS: as(rng), DestinationHost: host(rng, hosts&2 != 0),
		TrafficClass: uint8(rng.Intn(256)), FlowID: uint32(1 + rng.Intn(1<<20-1)),
		TailSeed: uint8(rng.Intn(256)), SCMP: control,
	}
	scn := &slayers.SCION{
		TrafficClass: v.TrafficClass, FlowID: v.FlowID,
		SrcIA: must(addr.ParseIA(v.SourceAS)), DstIA: must(addr.ParseIA(v.DestinationAS)),
	}
	check(scn.SetSrcAddr(addr.MustParseHost(v.SourceHost)))
	check(scn.SetDstAddr(addr.MustParseHost(v.DestinationHost)))
	scn.Path, scn.PathType = empty.Path{}, empty.PathType
	if form != nil {
		decoded := form.path(rng)
		scn.Path, scn.PathType = decoded, scion.PathType
		v.Path = bytesOf(decoded)
		v.Reversed = bytesOf(must(form.copyOf(decoded).Reverse()))
	}
	var layers []gopacket.SerializableLayer
	if length != nil {
		v.UDP = &udp{SourcePort: uint16(rng.Intn(1 << 16)), DestinationPort: uint16(rng.Intn(1 << 16))}
		v.TailLen = *length
		if room := mtu - slayers.CmnHdrLen - scn.AddrHdrLen() - scn.Path.Len() - 8; *length == mtu {
			v.TailLen = room
		}
		scn.NextHdr = slayers.L4UDP
		datagram := &slayers.UDP{SrcPort: v.UDP.SourcePort, DstPort: v.UDP.DestinationPort}
		datagram.SetNetworkLayerForChecksum(scn)
		layers = []gopacket.SerializableLayer{datagram}
	} else {
		room := slayers.MaxSCMPPacketLen - slayers.CmnHdrLen - scn.AddrHdrLen() - scn.Path.Len() - slayers.MaxSCMPHeaderSize
		v.TailLen = rng.Intn(min(maxQuote, room))
		if t := slayers.SCMPType(control.Type); t == slayers.SCMPTypeTracerouteRequest || t == slayers.SCMPTypeTracerouteReply {
			v.TailLen = 0
		}
		scn.NextHdr = slayers.L4SCMP
		head := &slayers.SCMP{
			TypeCode: slayers.CreateSCMPTypeCode(slayers.SCMPType(control.Type), slayers.SCMPCode(control.Code)),
		}
		head.SetNetworkLayerForChecksum(scn)
		layers = []gopacket.SerializableLayer{head}
		if body := control.body(); body != nil {
			layers = append(layers, body)
		}
	}
	layers = append(append([]gopacket.SerializableLayer{scn}, layers...), gopacket.Payload(pattern(v.TailLen, v.TailSeed)))
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	check(gopacket.SerializeLayers(buffer, options, layers...))
	packet := buffer.Bytes()
	v.Headers = hex.EncodeToString(packet[:len(packet)-v.TailLen])
	return v
}

// Bytes of any length: the same in the test that reads the vectors.
func pattern(length int, seed uint8) []byte {
	tail := make([]byte, length)
	for i := range tail {
		tail[i] = seed + uint8(i*197) + uint8(i>>8)*31
	}
	return tail
}

func (s *shape) path(rng *rand.Rand) *scion.Decoded {
	p := &scion.Decoded{}
	p.NumINF = len(s.segments)
	for i, hops := range s.segments {
		p.PathMeta.SegLen[i] = uint8(hops)
		p.InfoFields = append(p.InfoFields, path.InfoField{
			Peer: s.peering, ConsDir: rng.Intn(2) == 0,
			SegID: uint16(rng.Intn(1 << 16)), Timestamp: rng.Uint32(),
		})
		if s.current >= p.NumHops {
			p.PathMeta.CurrINF = uint8(i)
		}
		p.NumHops += hops
		for range hops {
			hop := path.HopField{
				IngressRouterAlert: rng.Intn(4) == 0, EgressRouterAlert: rng.Intn(4) == 0,
				ExpTime: uint8(rng.Intn(256)), ConsIngress: uint16(rng.Intn(1 << 16)), ConsEgress: uint16(rng.Intn(1 << 16)),
			}
			rng.Read(hop.Mac[:])
			p.HopFields = append(p.HopFields, hop)
		}
	}
	p.PathMeta.CurrHF = uint8(s.current)
	return p
}

// Reverse works in place.
func (s *shape) copyOf(p *scion.Decoded) *scion.Decoded {
	other := *p
	other.InfoFields = append([]path.InfoField(nil), p.InfoFields...)
	other.HopFields = append([]path.HopField(nil), p.HopFields...)
	return &other
}

// Each type in turn, then one that is not known.
func message(rng *rand.Rand, turn int) *scmp {
	types := []uint8{1, 2, 4, 5, 6, 128, 129, 130, 131, 100, 200}
	m := &scmp{Type: types[turn%len(types)], AS: as(rng)}
	switch m.Type {
	case 1, 4, 100, 200:
		m.Code = uint8(rng.Intn(256))
	}
	m.Number, m.ID, m.Seq = uint16(rng.Intn(1<<16)), uint16(rng.Intn(1<<16)), uint16(rng.Intn(1<<16))
	m.Ingress, m.Egress = uint16(rng.Intn(1<<16)), uint16(rng.Intn(1<<16))
	return m
}

func (m *scmp) body() gopacket.SerializableLayer {
	as := must(addr.ParseIA(m.AS))
	switch slayers.SCMPType(m.Type) {
	case slayers.SCMPTypeDestinationUnreachable:
		return &slayers.SCMPDestinationUnreachable{}
	case slayers.SCMPTypePacketTooBig:
		return &slayers.SCMPPacketTooBig{MTU: m.Number}
	case slayers.SCMPTypeParameterProblem:
		return &slayers.SCMPParameterProblem{Pointer: m.Number}
	case slayers.SCMPTypeExternalInterfaceDown:
		return &slayers.SCMPExternalInterfaceDown{IA: as, IfID: uint64(m.Ingress)}
	case slayers.SCMPTypeInternalConnectivityDown:
		return &slayers.SCMPInternalConnectivityDown{IA: as, Ingress: uint64(m.Ingress), Egress: uint64(m.Egress)}
	case slayers.SCMPTypeEchoRequest, slayers.SCMPTypeEchoReply:
		return &slayers.SCMPEcho{Identifier: m.ID, SeqNumber: m.Seq}
	case slayers.SCMPTypeTracerouteRequest, slayers.SCMPTypeTracerouteReply:
		return &slayers.SCMPTraceroute{Identifier: m.ID, Sequence: m.Seq, IA: as, Interface: uint64(m.Ingress)}
	}
	return nil
}

func as(rng *rand.Rand) string {
	return addr.MustIAFrom(addr.ISD(rng.Intn(1<<16)), addr.AS(rng.Int63n(1<<48))).String()
}

func host(rng *rand.Rand, v6 bool) string {
	var bytes [16]byte
	rng.Read(bytes[:])
	if v6 {
		bytes[0] = 0xfd
		return netip.AddrFrom16(bytes).String()
	}
	return netip.AddrFrom4([4]byte(bytes[:4])).String()
}

func bytesOf(p path.Path) string {
	bytes := make([]byte, p.Len())
	check(p.SerializeTo(bytes))
	return hex.EncodeToString(bytes)
}

// One line a vector, so that a difference is one line.
func write(vectors []vector) {
	out := bufio.NewWriter(os.Stdout)
	separator := "[\n"
	for _, v := range vectors {
		fmt.Fprintf(out, "%s%s", separator, must(json.Marshal(v)))
		separator = ",\n"
	}
	fmt.Fprintln(out, "\n]")
	check(out.Flush())
}

func writeSeeds(folder string, vectors []vector) {
	for i, v := range vectors {
		packet := append(must(hex.DecodeString(v.Headers)), pattern(v.TailLen, v.TailSeed)...)
		if len(packet) <= maxSeed && i%3 == 0 {
			check(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d", i)), packet, 0o644))
		}
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
