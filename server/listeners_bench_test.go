package server

import (
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/reuseport"
)

// BenchmarkListeners measures whether several listeners on one port answer kept
// connections faster than one.
func BenchmarkListeners(b *testing.B) {
	body := make([]byte, 420)
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("listeners=%d", n), func(b *testing.B) {
			address := "127.0.0.1:0"
			for range n {
				ln, err := reuseport.Listen("tcp4", address)
				if err != nil {
					b.Fatal(err)
				}
				address = ln.Addr().String()
				s := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.SetBody(body) }}
				served := make(chan error, 1)
				go func() { served <- s.Serve(ln) }()
				b.Cleanup(func() {
					ln.Close()
					<-served
				})
			}
			b.SetParallelism(16)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				client := &fasthttp.HostClient{Addr: address, MaxConns: 1}
				defer client.CloseIdleConnections()
				req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
				defer fasthttp.ReleaseRequest(req)
				defer fasthttp.ReleaseResponse(res)
				req.SetRequestURI("http://" + address + "/")
				for pb.Next() {
					if err := client.Do(req, res); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.StopTimer()
		})
	}
}
