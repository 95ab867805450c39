// An app in Go for tests under load: pages of any length, bodies that come back, and a WebSocket that returns every frame. It needs nothing but
// the standard library, so it is built without a network.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"crypto/sha1"
	"encoding/base64"
)

// page writes the bytes that both echoes agree on: byte i is (i*7 + length) mod 251.
func page(w io.Writer, length int) {
	part := make([]byte, 64*1024)
	for at := 0; at < length; {
		n := min(len(part), length-at)
		for i := 0; i < n; i++ {
			part[i] = byte(((at+i)*7 + length) % 251)
		}
		if _, err := w.Write(part[:n]); err != nil {
			return
		}
		at += n
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		echoFrames(w, r)
		return
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	length, _ := strconv.Atoi(rest)
	switch kind {
	case "length":
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", rest)
		page(w, length)
	case "chunked":
		w.Header().Set("Content-Type", "text/plain; charset=latin1")
		w.Header().Set("Set-Cookie", "n=\xe9; Path=/")
		w.(http.Flusher).Flush()
		page(w, length)
	case "status":
		w.Header()["Content-Type"] = nil
		w.WriteHeader(length)
	case "echo":
		w.Header().Set("X-Query", r.URL.RawQuery)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		io.Copy(w, r.Body)
	default:
		http.NotFound(w, r)
	}
}

func echoFrames(w http.ResponseWriter, r *http.Request) {
	conn, both, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	digest := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(digest[:]))
	if both.Flush() != nil {
		return
	}
	in, out := bufio.NewReaderSize(both.Reader, 256*1024), bufio.NewWriterSize(conn, 256*1024)
	for echoFrame(in, out) == nil {
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
	out.Flush()
}

// echoFrame returns one frame without its mask. A ping is answered as a pong.
func echoFrame(in *bufio.Reader, out *bufio.Writer) error {
	var head [14]byte
	if _, err := io.ReadFull(in, head[:2]); err != nil {
		return err
	}
	more := 0
	switch head[1] & 0x7f {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if _, err := io.ReadFull(in, head[2:2+more+4]); err != nil {
		return err
	}
	left := uint64(head[1] & 0x7f)
	if more == 2 {
		left = uint64(binary.BigEndian.Uint16(head[2:]))
	} else if more == 8 {
		left = binary.BigEndian.Uint64(head[2:])
	}
	mask := head[2+more : 2+more+4]
	first := head[0]
	if first&0x0f == 9 {
		first = first&0xf0 | 10
	}
	out.WriteByte(first)
	out.WriteByte(head[1] & 0x7f)
	out.Write(head[2 : 2+more])
	part := make([]byte, 64*1024)
	for at := 0; left > 0; {
		n, err := in.Read(part[:min(uint64(len(part)), left)])
		if err != nil {
			return err
		}
		for i := 0; i < n; i++ {
			part[i] ^= mask[(at+i)%4]
		}
		if _, err := out.Write(part[:n]); err != nil {
			return err
		}
		at, left = at+n, left-uint64(n)
	}
	if first&0x0f == 8 {
		return io.EOF
	}
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening on %d\n", listener.Addr().(*net.TCPAddr).Port)
	http.Serve(listener, http.HandlerFunc(answer))
}
