// The other side of a tunnel: WireGuard as golang.zx2c4.com/wireguard has it, with its user-space network stack. Its messages go over stdin and stdout
// instead of UDP, so that a test may lose, double, delay and damage them. Frames: 2 bytes length (little-endian) and a type with it, then the bytes.
//
//	0 a WireGuard message; 1 JSON: a request of the test on stdin, its answer on stdout
//
// Usage: counterpart PRIVATE PEER OWN_ADDRESS PEER_ADDRESS, keys in hex.
package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/netstack"
)

const (
	message = 0
	control = 1
)

// Ports of this side.
const (
	echoPort    = 7    // TCP and UDP: sends back what comes
	countPort   = 9000 // reads a line with milliseconds to wait, then everything, and answers bytes and SHA-1
	producePort = 9001 // reads a line with a number and sends so many bytes
)

type end struct{}

func (end) ClearSrc()           {}
func (end) SrcToString() string { return "" }
func (end) DstToString() string { return "[::1]:1" }
func (end) DstToBytes() []byte  { return netip.IPv6Loopback().AsSlice() }
func (end) DstIP() netip.Addr   { return netip.IPv6Loopback() }
func (end) SrcIP() netip.Addr   { return netip.IPv6Loopback() }

type pipes struct {
	in     chan []byte
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	out    *bufio.Writer
}

func (p *pipes) frame(kind byte, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var head [3]byte
	binary.LittleEndian.PutUint16(head[:], uint16(len(body)))
	head[2] = kind
	p.out.Write(head[:])
	p.out.Write(body)
	p.out.Flush()
}

func (p *pipes) Open(uint16) ([]conn.ReceiveFunc, uint16, error) {
	receive := func(packets [][]byte, sizes []int, eps []conn.Endpoint) (int, error) {
		select {
		case packet := <-p.in:
			sizes[0] = copy(packets[0], packet)
			eps[0] = end{}
			return 1, nil
		case <-p.closed:
			return 0, net.ErrClosed
		}
	}
	return []conn.ReceiveFunc{receive}, 1, nil
}
func (p *pipes) Close() error                                { return nil }
func (p *pipes) SetMark(uint32) error                        { return nil }
func (p *pipes) ParseEndpoint(string) (conn.Endpoint, error) { return end{}, nil }
func (p *pipes) BatchSize() int                              { return 1 }
func (p *pipes) Send(bufs [][]byte, _ conn.Endpoint) error {
	for _, buf := range bufs {
		p.frame(message, buf)
	}
	return nil
}

type request struct {
	ID    int    `json:"id"`
	Port  uint16 `json:"port"`  // of the other side
	Bytes int    `json:"bytes"` // to send; the other side answers what it likes
	Wait  int    `json:"wait"`  // milliseconds before anything is read
}

type answer struct {
	ID    int    `json:"id"`
	Sent  string `json:"sent,omitempty"`
	Got   string `json:"got,omitempty"`
	Bytes int64  `json:"bytes"`
	Error string `json:"error,omitempty"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Bytes that only look like chance, the same each time.
type noise struct{ state, left uint32 }

func (n *noise) Read(into []byte) (int, error) {
	if n.left == 0 {
		return 0, io.EOF
	}
	size := min(uint32(len(into)), n.left)
	for i := range into[:size] {
		n.state = n.state*1664525 + 1013904223
		into[i] = byte(n.state >> 24)
	}
	n.left -= size
	return int(size), nil
}

func sum(from io.Reader) (int64, string) {
	hash := sha1.New()
	count, _ := io.Copy(hash, from)
	return count, hex.EncodeToString(hash.Sum(nil))
}

func main() {
	if len(os.Args) != 5 {
		must(fmt.Errorf("usage: counterpart PRIVATE PEER OWN_ADDRESS PEER_ADDRESS"))
	}
	own, peer := netip.MustParseAddr(os.Args[3]), netip.MustParseAddr(os.Args[4])
	links := &pipes{in: make(chan []byte, 8192), closed: make(chan struct{}), out: bufio.NewWriterSize(os.Stdout, 65536)}
	tun, stack, err := netstack.CreateNetTUN([]netip.Addr{own}, nil, 1280)
	must(err)
	dev := device.NewDevice(tun, links, device.NewLogger(device.LogLevelError, ""))
	must(dev.IpcSet(fmt.Sprintf("private_key=%s\npublic_key=%s\nendpoint=[::1]:1\nallowed_ip=%s/128\n", os.Args[1], os.Args[2], peer)))
	must(dev.Up())
	serve(stack, own)
	links.frame(control, []byte(`{"id":0,"bytes":0}`))
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var head [3]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			os.Exit(0)
		}
		body := make([]byte, binary.LittleEndian.Uint16(head[:2]))
		if _, err := io.ReadFull(in, body); err != nil {
			os.Exit(0)
		}
		if head[2] == message {
			links.in <- body
			continue
		}
		var asked request
		must(json.Unmarshal(body, &asked))
		go func() {
			told, _ := json.Marshal(exchange(stack, netip.AddrPortFrom(peer, asked.Port), asked))
			links.frame(control, told)
		}()
	}
}

// Dials, sends, ends its side, and reads to the end.
func exchange(stack *netstack.Net, to netip.AddrPort, asked request) answer {
	connection, err := stack.DialTCPAddrPort(to)
	if err != nil {
		return answer{ID: asked.ID, Error: err.Error()}
	}
	defer connection.Close()
	sent := make(chan string)
	go func() {
		hash := sha1.New()
		io.Copy(connection, io.TeeReader(&noise{state: 1, left: uint32(asked.Bytes)}, hash))
		connection.CloseWrite()
		sent <- hex.EncodeToString(hash.Sum(nil))
	}()
	time.Sleep(time.Duration(asked.Wait) * time.Millisecond)
	count, got := sum(connection)
	return answer{ID: asked.ID, Sent: <-sent, Got: got, Bytes: count}
}

func serve(stack *netstack.Net, own netip.Addr) {
	accept := func(port uint16, run func(connection net.Conn)) {
		listener, err := stack.ListenTCPAddrPort(netip.AddrPortFrom(own, port))
		must(err)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer connection.Close()
					run(connection)
				}()
			}
		}()
	}
	accept(echoPort, func(connection net.Conn) { io.Copy(connection, connection) })
	accept(countPort, func(connection net.Conn) {
		in := bufio.NewReaderSize(connection, 16)
		var wait int
		fmt.Fscanf(in, "%d\n", &wait)
		time.Sleep(time.Duration(wait) * time.Millisecond)
		count, got := sum(in)
		fmt.Fprintf(connection, "%d %s", count, got)
	})
	accept(producePort, func(connection net.Conn) {
		var bytes uint32
		fmt.Fscanf(connection, "%d\n", &bytes)
		io.Copy(connection, &noise{state: 1, left: bytes})
	})
	packets, err := stack.ListenUDPAddrPort(netip.AddrPortFrom(own, echoPort))
	must(err)
	go func() {
		buf := make([]byte, 2048)
		for {
			size, from, err := packets.ReadFrom(buf)
			if err != nil {
				return
			}
			packets.WriteTo(buf[:size], from)
		}
	}()
}
