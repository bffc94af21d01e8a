// Tells what the reference decoder makes of packets: read from stdin, each after its length in four bytes; one line of
// answer each on stdout. The same lines are written by examples/verdicts.rs for our decoder.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"os"

	"github.com/gopacket/gopacket"

	"github.com/scionproto/scion/pkg/slayers"
	"github.com/scionproto/scion/pkg/slayers/path"
	"github.com/scionproto/scion/pkg/slayers/path/empty"
	"github.com/scionproto/scion/pkg/slayers/path/scion"
)

const (
	// Where questions go: the shim's port.
	endhostPort = 30041
	// Bytes of a TCP header.
	tcpLen = 20
)

var errNobody = errors.New("nobody's")

func main() {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		var length uint32
		if err := binary.Read(in, binary.BigEndian, &length); err == io.EOF {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		packet := make([]byte, length)
		if _, err := io.ReadFull(in, packet); err != nil {
			log.Fatal(err)
		}
		line, err := verdict(packet)
		if err != nil {
			line = "reject"
		}
		fmt.Fprintln(out, line)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// The layers of a packet, as the reference reads them; options of extensions are read too.
type layers struct {
	scn     slayers.SCION
	hbh     slayers.HopByHopExtn
	e2e     slayers.EndToEndExtn
	udp     slayers.UDP
	scmp    slayers.SCMP
	decoded []gopacket.LayerType
}

func verdict(packet []byte) (string, error) {
	var l layers
	parser := gopacket.NewDecodingLayerParser(slayers.LayerTypeSCION, &l.scn, &l.hbh, &l.e2e, &l.udp, &l.scmp)
	parser.IgnoreUnsupported = true
	if err := parser.DecodeLayers(packet, &l.decoded); err != nil {
		return "", err
	}
	source, err := l.scn.SrcAddr()
	if err != nil {
		return "", err
	}
	destination, err := l.scn.DstAddr()
	if err != nil {
		return "", err
	}
	upper, err := l.upper()
	if err != nil {
		return "", err
	}
	port := "-"
	if number, err := l.port(); err == nil {
		port = fmt.Sprint(number)
	}
	at := slayers.CmnHdrLen + l.scn.AddrHdrLen()
	raw := packet[at : at+l.scn.Path.Len()]
	return fmt.Sprintf("tc=%d flow=%d src=%v,%v dst=%v,%v path=%d:%x back=%s port=%s %s",
		l.scn.TrafficClass, l.scn.FlowID, l.scn.SrcIA, source, l.scn.DstIA, destination,
		l.scn.PathType, raw, back(l.scn.PathType, raw), port, upper), nil
}

// The way back, of the kinds of paths that have one as they are.
func back(kind path.Type, raw []byte) string {
	switch kind {
	case empty.PathType:
		return ""
	case scion.PathType:
		var p scion.Raw
		if err := p.DecodeFromBytes(append([]byte(nil), raw...)); err != nil {
			return "-"
		}
		if _, err := p.Reverse(); err != nil {
			return "-"
		}
		return hex.EncodeToString(p.Raw)
	}
	return "-"
}

func (l *layers) last() gopacket.LayerType {
	return l.decoded[len(l.decoded)-1]
}

// What the SCION header and the extensions after it say that follows, and that.
func (l *layers) carried() (slayers.L4ProtocolType, []byte) {
	switch l.last() {
	case slayers.LayerTypeHopByHopExtn:
		return l.hbh.NextHdr, l.hbh.Payload
	case slayers.LayerTypeEndToEndExtn:
		return l.e2e.NextHdr, l.e2e.Payload
	}
	return l.scn.NextHdr, l.scn.Payload
}

func (l *layers) upper() (string, error) {
	switch l.last() {
	case slayers.LayerTypeSCIONUDP:
		again := slayers.UDP{SrcPort: l.udp.SrcPort, DstPort: l.udp.DstPort, Length: l.udp.Length}
		again.SetNetworkLayerForChecksum(&l.scn)
		serialize(&again, l.udp.Payload)
		return fmt.Sprintf("udp %d %d payload=%s sum=%v", l.udp.SrcPort, l.udp.DstPort, digest(l.udp.Payload),
			same(again.Checksum, l.udp.Checksum)), nil
	case slayers.LayerTypeSCMP:
		message, err := l.message()
		if err != nil {
			return "", err
		}
		again := slayers.SCMP{TypeCode: l.scmp.TypeCode}
		again.SetNetworkLayerForChecksum(&l.scn)
		serialize(&again, l.scmp.Payload)
		return fmt.Sprintf("scmp %d %s sum=%v", l.scmp.TypeCode.Type(), message,
			same(again.Checksum, l.scmp.Checksum)), nil
	}
	protocol, _ := l.carried()
	switch protocol {
	case slayers.HopByHopClass, slayers.End2EndClass, slayers.L4UDP, slayers.L4SCMP:
		// The parser stops where nothing follows; snet refuses that too (pkg/snet/packet.go).
		return "", errors.New("a header is said to follow, and nothing does")
	}
	return fmt.Sprintf("other %d", protocol), nil
}

func serialize(layer gopacket.SerializableLayer, payload []byte) {
	options := gopacket.SerializeOptions{ComputeChecksums: true}
	if err := gopacket.SerializeLayers(gopacket.NewSerializeBuffer(), options, layer, gopacket.Payload(payload)); err != nil {
		log.Fatal(err)
	}
}

// 0 and 0xffff are the same number in ones' complement (RFC 1071).
func same(a, b uint16) bool {
	return a == b || a^b == 0xffff && (a == 0 || b == 0)
}

func digest(bytes []byte) string {
	sum := fnv.New64a()
	sum.Write(bytes)
	return fmt.Sprintf("%d:%x", len(bytes), sum.Sum64())
}

func (l *layers) message() (string, error) {
	body, code := l.scmp.Payload, l.scmp.TypeCode.Code()
	switch l.scmp.TypeCode.Type() {
	case slayers.SCMPTypeDestinationUnreachable:
		var m slayers.SCMPDestinationUnreachable
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("code=%d quoted=%s", code, digest(m.Payload)), err
	case slayers.SCMPTypePacketTooBig:
		var m slayers.SCMPPacketTooBig
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("mtu=%d quoted=%s", m.MTU, digest(m.Payload)), err
	case slayers.SCMPTypeParameterProblem:
		var m slayers.SCMPParameterProblem
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("code=%d pointer=%d quoted=%s", code, m.Pointer, digest(m.Payload)), err
	case slayers.SCMPTypeExternalInterfaceDown:
		var m slayers.SCMPExternalInterfaceDown
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("as=%v interface=%d quoted=%s", m.IA, m.IfID, digest(m.Payload)), err
	case slayers.SCMPTypeInternalConnectivityDown:
		var m slayers.SCMPInternalConnectivityDown
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("as=%v ingress=%d egress=%d quoted=%s", m.IA, m.Ingress, m.Egress, digest(m.Payload)), err
	case slayers.SCMPTypeEchoRequest, slayers.SCMPTypeEchoReply:
		var m slayers.SCMPEcho
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("id=%d seq=%d data=%s", m.Identifier, m.SeqNumber, digest(m.Payload)), err
	case slayers.SCMPTypeTracerouteRequest, slayers.SCMPTypeTracerouteReply:
		var m slayers.SCMPTraceroute
		err := m.DecodeFromBytes(body, gopacket.NilDecodeFeedback)
		return fmt.Sprintf("id=%d seq=%d as=%v interface=%d", m.Identifier, m.Sequence, m.IA, m.Interface), err
	}
	return fmt.Sprintf("code=%d body=%s", code, digest(body)), nil
}

// The port that the packet is handed to, by the rules of the reference's router and shim (router/dataplane.go,
// dispatcher/dispatcher.go), told with their decoders.
func (l *layers) port() (uint16, error) {
	switch l.last() {
	case slayers.LayerTypeSCIONUDP:
		return l.udp.DstPort, nil
	case slayers.LayerTypeSCMP:
		return l.scmpPort()
	}
	protocol, bytes := l.carried()
	if protocol != slayers.L4TCP {
		return endhostPort, nil
	}
	if len(bytes) < tcpLen {
		return 0, errNobody
	}
	return binary.BigEndian.Uint16(bytes[2:]), nil
}

func (l *layers) scmpPort() (uint16, error) {
	switch l.scmp.TypeCode.Type() {
	case slayers.SCMPTypeEchoRequest, slayers.SCMPTypeTracerouteRequest:
		return endhostPort, nil
	case slayers.SCMPTypeEchoReply, slayers.SCMPTypeTracerouteReply:
		return binary.BigEndian.Uint16(l.scmp.Payload), nil
	}
	if l.scmp.NextLayerType() == gopacket.LayerTypePayload {
		return 0, errNobody
	}
	options := gopacket.DecodeOptions{NoCopy: true}
	all := gopacket.NewPacket(l.scmp.Payload, l.scmp.NextLayerType(), options).Layers()
	if len(all) != 2 {
		return 0, errNobody
	}
	quote := gopacket.NewPacket(all[1].LayerContents(), slayers.LayerTypeSCION, options)
	if datagram, ok := quote.Layer(slayers.LayerTypeSCIONUDP).(*slayers.UDP); ok {
		if datagram.SrcPort == 0 {
			return 0, errNobody
		}
		return datagram.SrcPort, nil
	}
	control, ok := quote.Layer(slayers.LayerTypeSCMP).(*slayers.SCMP)
	if !ok {
		return 0, errNobody
	}
	switch control.TypeCode.Type() {
	case slayers.SCMPTypeEchoRequest, slayers.SCMPTypeTracerouteRequest:
	default:
		return 0, errNobody
	}
	if echo, ok := quote.Layer(slayers.LayerTypeSCMPEcho).(*slayers.SCMPEcho); ok {
		return echo.Identifier, nil
	}
	if trace, ok := quote.Layer(slayers.LayerTypeSCMPTraceroute).(*slayers.SCMPTraceroute); ok {
		return trace.Identifier, nil
	}
	return 0, errNobody
}
