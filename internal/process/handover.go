package process

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// ListenFDs is the environment variable that is 1 if the parent passes a listening socket as
// file 3, as systemd does.
const ListenFDs = "LISTEN_FDS"

// Listen returns the socket that the parent passed, or else opens address.
func Listen(address string) (net.Listener, error) {
	if os.Getenv(ListenFDs) != "1" {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return ln, nil
	}
	f := os.NewFile(3, "handed down socket")
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("inherit the socket in %s: %w", ListenFDs, err)
	}
	return ln, nil
}

// KillAtEnd kills this process with SIGKILL when r ends, such as a standard input that the parent
// keeps open. It does not return. A read may fail after SIGCONT although the parent lives, so
// failed reads are repeated.
func KillAtEnd(r io.Reader) {
	for {
		if _, err := io.Copy(io.Discard, r); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}
