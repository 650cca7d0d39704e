// Package compose runs docker-compose.yml in tests. scripts/compose-test.sh prepares the images, the
// engine and the environment that it needs.
package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"companyscore/internal/test/program"
)

// Services are the containers of a deployment that stay.
var Services = []string{"clickhouse", "redis", "api-1", "api-2", "proxy", "work", "batch"}

// startTimeout bounds the time until all containers are healthy.
const startTimeout = 3 * time.Minute

// Deployment is a running docker-compose.yml. Its methods are safe for concurrent use.
type Deployment struct {
	// BaseURL is the address of the proxy.
	BaseURL string
	// AdminURL is the admin address of api-1.
	AdminURL string
	// ClickHouseURL and RedisURL are the stores.
	ClickHouseURL, RedisURL string

	dir string
	env []string
}

// Start removes what is left of an earlier deployment and starts a new one with empty stores.
// It returns when all containers are healthy. tiers is the content of the file of limits. Services of
// without are not started. The caller calls Stop, also after an error unless d is nil.
func Start(ctx context.Context, tiers string, without ...string) (d *Deployment, err error) {
	if os.Getenv("COMPOSE_TEST_ENGINE") == "" {
		return nil, errors.New("COMPOSE_TEST_ENGINE is not set: run make compose-test")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d = &Deployment{}
	if d.dir, err = os.MkdirTemp("", "cs-compose-"); err != nil {
		return nil, err
	}
	file := filepath.Join(d.dir, "tiers.yaml")
	if tiers == "" {
		tiers = "{}\n"
	}
	if err := os.Chmod(d.dir, 0o755); err != nil { // the roles run as another user
		return nil, err
	}
	if err := os.WriteFile(file, []byte(tiers), 0o644); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(4)
	if err != nil {
		return nil, err
	}
	d.BaseURL, d.AdminURL = "http://"+addresses[0], "http://"+addresses[1]
	d.ClickHouseURL = "http://companyscore:" + os.Getenv("CLICKHOUSE_PASSWORD") + "@" + addresses[2] + "/companyscore"
	d.RedisURL = "redis://:" + os.Getenv("REDIS_PASSWORD") + "@" + addresses[3] + "/0"
	d.env = append(os.Environ(), "TIERS_FILE="+file, "API_LISTEN="+addresses[0], "ADMIN_LISTEN="+addresses[1], "CLICKHOUSE_LISTEN="+
		addresses[2], "REDIS_LISTEN="+addresses[3])
	if err := d.down(ctx); err != nil {
		return d, err
	}
	args := []string{"up", "-d", "--no-build"}
	for _, service := range without {
		args = append(args, "--scale", service+"=0")
	}
	if out, err := d.Compose(ctx, args...); err != nil {
		logs, _ := d.Logs(context.WithoutCancel(ctx))
		return d, fmt.Errorf("%w\n%s\n%s", err, out, program.Tail([]byte(logs), 8000))
	}
	return d, d.WaitHealthy(ctx, slices.DeleteFunc(slices.Clone(Services), func(service string) bool {
		return slices.Contains(without, service)
	})...)
}

// freeAddresses returns addresses of this machine on which nothing listens.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		addresses = append(addresses, ln.Addr().String())
	}
	return addresses, nil
}

// Stop removes the deployment with its volumes.
func (d *Deployment) Stop(ctx context.Context) error {
	defer os.RemoveAll(d.dir)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return d.down(ctx)
}

func (d *Deployment) down(ctx context.Context) error {
	_, err := d.Compose(ctx, "down", "--volumes", "--remove-orphans", "--timeout", "30")
	return err
}

// Compose runs a command of docker-compose and returns its output.
func (d *Deployment) Compose(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker-compose", args...)
	cmd.Dir, cmd.Env = os.Getenv("COMPOSE_TEST_ROOT"), d.env
	return output(cmd)
}

// output runs a command and returns its standard output. The error contains its standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, program.Tail(stderr.Bytes(), 4000))
	}
	return stdout.String(), nil
}

// Logs returns what the containers have logged.
func (d *Deployment) Logs(ctx context.Context) (string, error) {
	return d.Compose(ctx, "logs", "--no-color")
}

// inspect returns a field of the container of a service, by a template.
func (d *Deployment) inspect(ctx context.Context, service, field string) (string, error) {
	engine := os.Getenv("COMPOSE_TEST_ENGINE")
	label := "label=com.docker.compose."
	id, err := output(exec.CommandContext(ctx, engine, "ps", "--all", "--quiet", "--filter",
		label+"project="+os.Getenv("COMPOSE_PROJECT_NAME"), "--filter", label+"service="+service))
	if err != nil {
		return "", err
	}
	ids := strings.Fields(id)
	if len(ids) != 1 {
		return "", fmt.Errorf("%d containers of %s", len(ids), service)
	}
	out, err := output(exec.CommandContext(ctx, engine, "inspect", "--type", "container", "--format", field, ids[0]))
	return strings.TrimSpace(out), err
}

// WaitHealthy waits until the containers of services are healthy and the proxy answers.
func (d *Deployment) WaitHealthy(ctx context.Context, services ...string) error {
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		var unhealthy []string
		for _, service := range services {
			if status, err := d.inspect(ctx, service, "{{.State.Status}} {{.State.Health.Status}}"); err != nil ||
				status != "running healthy" {
				unhealthy = append(unhealthy, service+" "+status)
			}
		}
		if len(unhealthy) == 0 && d.answers(ctx) {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("not healthy: %s", strings.Join(unhealthy, ", "))
		}
	}
}

func (d *Deployment) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.BaseURL+"/proxy-health", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// PID returns the process of a service, on this machine.
func (d *Deployment) PID(ctx context.Context, service string) (int, error) {
	text, err := d.inspect(ctx, service, "{{.State.Pid}}")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(text)
	if err == nil && pid == 0 {
		err = fmt.Errorf("%s does not run", service)
	}
	return pid, err
}

// Signal sends a signal to the process of a service. The engine does not know of it, so it takes the
// end of the process for a crash.
func (d *Deployment) Signal(ctx context.Context, service string, sig syscall.Signal) error {
	pid, err := d.PID(ctx, service)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// Environment returns the variables with which a program of this machine uses the stores.
func (d *Deployment) Environment() []string {
	return append(slices.Clone(os.Environ()), "CLICKHOUSE_URL="+d.ClickHouseURL, "REDIS_URL="+d.RedisURL)
}

// Command runs a command of the program at path on the stores and returns its output.
func (d *Deployment) Command(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, program.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = d.Environment()
	return output(cmd)
}
