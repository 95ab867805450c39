// An app in Go for tests under load: pages of any length, echoed bodies, and a WebSocket that echoes every frame. It uses only the standard
// library, so that it can be built without a network.
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

// writePage writes the same bytes as echo-node.mjs: byte i is (i*7 + length) mod 251.
func writePage(w io.Writer, length int) {
	chunk := make([]byte, 64*1024)
	for offset := 0; offset < length; {
		n := min(len(chunk), length-offset)
		for i := 0; i < n; i++ {
			chunk[i] = byte(((offset+i)*7 + length) % 251)
		}
		if _, err := w.Write(chunk[:n]); err != nil {
			return
		}
		offset += n
	}
}

func handle(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		echoFrames(w, r)
		return
	}
	kind, argument, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	length, _ := strconv.Atoi(argument)
	switch kind {
	case "length":
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", argument)
		writePage(w, length)
	case "chunked":
		w.Header().Set("Content-Type", "text/plain; charset=latin1")
		w.Header().Set("Set-Cookie", "n=\xe9; Path=/")
		w.(http.Flusher).Flush()
		writePage(w, length)
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
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	digest := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(digest[:]))
	if buffered.Flush() != nil {
		return
	}
	in, out := bufio.NewReaderSize(buffered.Reader, 256*1024), bufio.NewWriterSize(conn, 256*1024)
	for echoFrame(in, out) == nil {
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
	out.Flush()
}

// echoFrame echoes one frame without its mask, and a ping as a pong.
func echoFrame(in *bufio.Reader, out *bufio.Writer) error {
	var header [14]byte
	if _, err := io.ReadFull(in, header[:2]); err != nil {
		return err
	}
	extendedBytes := 0
	switch header[1] & 0x7f {
	case 126:
		extendedBytes = 2
	case 127:
		extendedBytes = 8
	}
	if _, err := io.ReadFull(in, header[2:2+extendedBytes+4]); err != nil {
		return err
	}
	remaining := uint64(header[1] & 0x7f)
	if extendedBytes == 2 {
		remaining = uint64(binary.BigEndian.Uint16(header[2:]))
	} else if extendedBytes == 8 {
		remaining = binary.BigEndian.Uint64(header[2:])
	}
	mask := header[2+extendedBytes : 2+extendedBytes+4]
	firstByte := header[0]
	if firstByte&0x0f == 9 {
		firstByte = firstByte&0xf0 | 10
	}
	out.WriteByte(firstByte)
	out.WriteByte(header[1] & 0x7f)
	out.Write(header[2 : 2+extendedBytes])
	chunk := make([]byte, 64*1024)
	for offset := 0; remaining > 0; {
		n, err := in.Read(chunk[:min(uint64(len(chunk)), remaining)])
		if err != nil {
			return err
		}
		for i := 0; i < n; i++ {
			chunk[i] ^= mask[(offset+i)%4]
		}
		if _, err := out.Write(chunk[:n]); err != nil {
			return err
		}
		offset, remaining = offset+n, remaining-uint64(n)
	}
	if firstByte&0x0f == 8 {
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
	http.Serve(listener, http.HandlerFunc(handle))
}
