package server

import (
	"bufio"
	"io"
	"net"
	"testing"
)

const hotRequest = "GET /v1/score/example.com HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\nX-API-Key: svc_live_0123456789abcdef0123456789abcdef\r\n\r\n"

// BenchmarkHotConnection measures hot reads over kept connections on loopback: the kernel,
// the parser, the handler and a client that only counts bytes.
func BenchmarkHotConnection(b *testing.B) {
	s, _ := hotServer(b)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	b.Cleanup(func() {
		ln.Close()
		<-served
	})
	size := hotAnswer(b, ln.Addr().String())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answer := make([]byte, size)
		for pb.Next() {
			if _, err := io.WriteString(conn, hotRequest); err != nil {
				b.Error(err)
				return
			}
			if _, err := io.ReadFull(conn, answer); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// hotAnswer returns the length of an answer.
func hotAnswer(b *testing.B, address string) int {
	b.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, hotRequest); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReader(conn)
	head, err := r.ReadSlice('{')
	if err != nil {
		b.Fatal(err)
	}
	size := len(head)
	for depth := 1; depth > 0; size++ {
		c, err := r.ReadByte()
		if err != nil {
			b.Fatal(err)
		}
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return size
}
