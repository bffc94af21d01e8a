// Command policy asks the reference implementation what path policies mean, and prints its verdicts:
// a line for each path, then one for each sequence and each access list, with a digit for each path: 1 where it passes.
//
// With a module that requires github.com/scionproto/scion v0.15.1 around it: go run . > verdicts.txt
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"

	"github.com/scionproto/scion/pkg/addr"
	"github.com/scionproto/scion/pkg/segment/iface"
	"github.com/scionproto/scion/pkg/snet"
	snetpath "github.com/scionproto/scion/pkg/snet/path"
	"github.com/scionproto/scion/private/path/pathpol"
)

// Each is AS, interface out, interface in, AS, and so on. The first one stays inside an AS.
var paths = []string{
	"",
	"1-ff00:0:111 1 2 1-ff00:0:110",
	"1-ff00:0:111 3 1 1-ff00:0:112",
	"1-ff00:0:111 1 2 1-ff00:0:110 3 1 1-ff00:0:112",
	"1-ff00:0:111 2 1 1-ff00:0:120 2 3 1-ff00:0:112",
	"1-ff00:0:111 1 2 1-ff00:0:110 1 1 1-ff00:0:120 2 3 1-ff00:0:112",
	"1-ff00:0:111 1 2 1-ff00:0:110 4 1 2-ff00:0:210 2 1 2-ff00:0:211",
	"1-ff00:0:111 2 1 1-ff00:0:120 4 3 2-ff00:0:210 2 1 2-ff00:0:211",
	"1-ff00:0:111 1 2 1-ff00:0:110 1 1 1-ff00:0:120 4 3 2-ff00:0:210 2 1 2-ff00:0:211",
	"1-64512 10 1 1-10 11 110 2-64512",
}

// Sequences that say what the language is, and what it is not.
var sequences = []string{
	"0", "1", "0 0", "0 0 0", "0*", "0+", "0?", "0 0?", "0 0 0?", "0* 0*", "0* 0+", "(0 0)?", "(0 0)+", "((0))", "(0|1) 0",
	"1+", "1* 2*", "1+ 2+", "1+ 2?", "1 1|2 1", "1 (1 | 2) 2", "0 1-ff00:0:110 0", "0* 1-ff00:0:110 0*", "0* 1-ff00:0:110|1-ff00:0:120 0*",
	"0-0#2 0*", "0-0#0,2 0*", "0-0#2,0 0*", "0* 0-0#1", "0* 0-0#1,0", "0* 0-0#0,1", "0* 0-0#1,0 0*", "0* 0-0#1,2 0*", "0* 0-0#2,1 0*",
	"1-ff00:0:111#1 1-ff00:0:110#2", "1-ff00:0:111#0,1 1-ff00:0:110#2,3 1-ff00:0:112#1,0", "1-ff00:0:111 1-ff00:0:110#3,2 1-ff00:0:112",
	"0-ff00:0:111 0*", "0-64512 0* 0-64512", "1-64512 1-10#1,11 2-64512#110", "1-0 1-0", "1-0#0 1-0#0,0", "1-ff00:0:110#1,2*", "0 0 0 ?  ",
	"0 2-ff00:0:210|1-ff00:0:120 0*", "0?+", "0+?", "(0?)* 1", "(1 2)* 1+ 2*", " 0\t0\n", "1 -ff00:0:111 0", "1-ff00:0:111 # 1 0", "1-ff00:0:111#1 , 0 0",
	"0* 3 0*", "1-ff00:0:111|1-64512 0*", "(0* 1-ff00:0:120#4 0*) | (0 0)", "(1-ff00:0:111 | 1-ff00:0:112) (0 | 0 0)",
	// No sequences.
	" ", "0 |", "| 0", "0 | | 0", "?", "*0", "()", "(0", "0)", "1#2", "0#0#0", "0-0-0#0", "1-", "-1", "1-ff00:0", "1-ff00::110", "1-ff00:0:110#",
	"1-ff00:0:110#1,", "1-ff00:0:110#,1", "1-ff00:0:110#1,2,3", "1-ff00:0:110#a", "x", "0!", "0 & 0", "1.0", "1-ff00:0:110:1", "1-x",
}

var lists = [][]string{
	{"+"}, {"-"}, {"+ 0"}, {"- 0-0#0"}, {"+ 1", "-"}, {"- 1", "+"}, {"- 2", "+"}, {"+ 1-0#0", "- 0"}, {"- 1-ff00:0:110", "+"},
	{"- 1-ff00:0:110#2", "+"}, {"- 1-ff00:0:110#2,0", "+"}, {"- 1-ff00:0:110#0,2", "+"}, {"- 1-ff00:0:110#2,3", "+"}, {"- 1-ff00:0:110#4,4", "+"},
	{"- 1-ff00:0:110#3,2", "+"}, {"+ 1-ff00:0:111", "+ 1-ff00:0:112", "+ 1-ff00:0:120", "-"}, {"+ 1-ff00:0:110", "- 1", "+"},
	{"- 1", "+ 1-ff00:0:110", "+"}, {"+ 1-ff00:0:120#2", "- 1-ff00:0:120", "+"}, {"- 0-64512", "+"}, {"- 0-ff00:0:210#1", "+"}, {"- 1-10#1,11", "+"},
	{"- 1-10#2,12", "+"}, {"- 1-10#11,1", "+"},
	// No lists.
	{}, {"+ 1"}, {"-", "+"}, {"+ 1", "-", "+"}, {"* 0"}, {"0"}, {"+ 0 0", "+"}, {"+1", "+"}, {"- 1#2", "+"}, {"- 1-x", "+"}, {"- 1-2#x", "+"}, {"- 1-2#1,2,3", "+"},
}

// random writes a sequence of hops that are on the paths, or nearly.
func random(r *rand.Rand, depth int) string {
	hops := []string{
		"0", "0*", "0*", "0+", "1", "2*", "1-ff00:0:111", "1-ff00:0:110", "1-ff00:0:112", "1-ff00:0:120", "2-ff00:0:210", "2-ff00:0:211", "1-ff00:0:111#1",
		"1-ff00:0:110#2", "1-ff00:0:110#2,3", "0-0#0,1", "0-0#1", "1-ff00:0:120#1,0", "0-ff00:0:120#0,4", "2-0#1",
	}
	switch n := r.Intn(10); {
	case n < 3 || depth == 0:
		return hops[r.Intn(len(hops))]
	case n < 6:
		return random(r, depth-1) + " " + random(r, depth-1)
	case n < 7:
		return random(r, depth-1) + "|" + random(r, depth-1)
	case n < 8:
		return "(" + random(r, depth-1) + ")"
	default:
		return random(r, depth-1) + []string{"?", "+", "*"}[r.Intn(3)]
	}
}

func parse(text string) snet.Path {
	words := strings.Fields(text)
	var interfaces []snet.PathInterface
	add := func(ia, id string) {
		number, err := strconv.ParseUint(id, 10, 16)
		if err != nil {
			panic(err)
		}
		interfaces = append(interfaces, snet.PathInterface{IA: addr.MustParseIA(ia), ID: iface.ID(number)})
	}
	for i := 0; i+3 < len(words); i += 3 {
		add(words[i], words[i+1])
		add(words[i+3], words[i+2])
	}
	return snetpath.Path{Meta: snet.PathMetadata{Interfaces: interfaces}}
}

// verdicts has a digit for each path, or is "error".
func verdicts(err error, eval func([]snet.Path) []snet.Path) string {
	if err != nil {
		return "error"
	}
	var digits strings.Builder
	for _, text := range paths {
		digits.WriteString(strconv.Itoa(len(eval([]snet.Path{parse(text)}))))
	}
	return digits.String()
}

func ask(text string) string {
	sequence, err := pathpol.NewSequence(text)
	return verdicts(err, sequence.Eval)
}

func main() {
	for _, path := range paths {
		fmt.Printf("path %q\n", path)
	}
	r := rand.New(rand.NewSource(1))
	for count := len(sequences); len(sequences) < count+250; {
		// What matches almost nothing or everything says little.
		text := random(r, 5)
		if ones := strings.Count(ask(text), "1"); ones >= 2 && ones < len(paths)-1 {
			sequences = append(sequences, text)
		}
	}
	for _, text := range sequences {
		fmt.Printf("sequence %s %q\n", ask(text), text)
	}
	for _, lines := range lists {
		text, err := json.Marshal(lines)
		if err != nil {
			panic(err)
		}
		var acl pathpol.ACL
		if len(lines) == 0 {
			text = []byte("[]")
		}
		err = json.Unmarshal(text, &acl)
		fmt.Printf("acl %s %s\n", verdicts(err, acl.Eval), text)
	}
}
