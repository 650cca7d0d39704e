package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Nginx is an nginx process with its own directory.
type Nginx struct {
	Address string
	dir     string
	binary  string
}

// ErrNoNginx reports that nginx is not installed.
var ErrNoNginx = errors.New("nginx is not installed (Debian, Ubuntu: apt-get install nginx-light)")

// NewNginx writes the configuration of an nginx under dir, which must be empty. With
// an origin it is a cache in front of the origin, keyed by API key and address, that caches
// every answer. keepOpen keeps the files of answers open. Without an origin it returns the
// answer from its configuration. It has GOMAXPROCS workers.
func NewNginx(dir, origin string, keepOpen bool, a Answer, workers int) (*Nginx, error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary = "/usr/sbin/nginx"; !isFile(binary) { // often not in PATH
			return nil, ErrNoNginx
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	location := ""
	if origin != "" {
		location = fmt.Sprintf(`
      proxy_pass http://%s;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache answers;
      proxy_cache_key "$http_x_api_key$request_uri";
      proxy_cache_valid 200 1h;
      proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;`, origin)
	} else {
		if location, err = returning(a); err != nil {
			return nil, err
		}
	}
	files := ""
	if keepOpen {
		files = "open_file_cache max=1000 inactive=1h;"
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // without it workers cannot write to the directory
	}
	text := fmt.Sprintf(`%s
daemon off;
worker_processes %d;
pid %[3]s/nginx.pid;
error_log %[3]s/error.log warn;
events { worker_connections 1024; }
http {
  access_log off;
  %[6]s
  server_tokens off;
  keepalive_timeout 600;
  keepalive_requests 1000000000;
  client_body_temp_path %[3]s/client;
  proxy_temp_path %[3]s/proxy;
  fastcgi_temp_path %[3]s/fastcgi;
  uwsgi_temp_path %[3]s/uwsgi;
  scgi_temp_path %[3]s/scgi;
  proxy_cache_path %[3]s/cache keys_zone=answers:10m max_size=100m inactive=1h;
  server {
    listen %[4]s;
    location / {%[5]s
    }
  }
}
`, user, workers, dir, address, location, files)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return &Nginx{Address: address, dir: dir, binary: binary}, nil
}

// returning returns a location that serves the answer from the configuration.
func returning(a Answer) (string, error) {
	var b strings.Builder
	names := make([]string, 0, len(a.Header))
	for name := range a.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value, err := quoted(a.Header[name])
		if err != nil {
			return "", err
		}
		if name == "Content-Type" {
			fmt.Fprintf(&b, "\n      default_type %s;", value)
		} else {
			fmt.Fprintf(&b, "\n      add_header %s %s;", name, value)
		}
	}
	body, err := quoted(a.Body)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\n      return 200 %s;", body)
	return b.String(), nil
}

// quoted quotes a text for the configuration of nginx, which has no escape for a dollar sign.
func quoted(text string) (string, error) {
	if strings.ContainsAny(text, "$'\\\n") {
		return "", errors.New("nginx cannot serve this answer from its configuration")
	}
	return "'" + text + "'", nil
}

// Command returns the command that runs nginx in the foreground.
func (n *Nginx) Command() *exec.Cmd {
	cmd := exec.Command(n.binary, "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"), "-e", filepath.Join(n.dir, "error.log"))
	cmd.Stderr = os.Stderr
	return cmd
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
