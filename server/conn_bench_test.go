package server

import (
	"io"
	"net"
	"testing"
)

const hotRequest = "GET /v1/score/example.com HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\n" +
	"X-API-Key: svc_live_0123456789abcdef0123456789abcdef\r\n\r\n"

// BenchmarkHotConnection measures hot reads over kept connections on loopback: the kernel,
// the parser, the handler and a client that only looks at the last byte.
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
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answer := make([]byte, 4096)
		for pb.Next() {
			if _, err := io.WriteString(conn, hotRequest); err != nil {
				b.Error(err)
				return
			}
			if n, err := conn.Read(answer); err != nil || answer[n-1] != '}' { // the server writes an answer at once
				b.Errorf("read %q, %v", answer[:n], err)
				return
			}
		}
	})
}
