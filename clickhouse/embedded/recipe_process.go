package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"companyscore/internal/process"
)

// recipeAnswer is what the process of a recipe writes when it has ended.
type recipeAnswer struct {
	Read  uint64 // rows
	Error string // "" for none
}

// recipeGrace is the time between the limit of a recipe and the kill of its process.
const recipeGrace = 2 * time.Second

// RunRecipe runs a recipe in a process of its own and returns the number of rows read from files. command starts a program that calls
// ServeRecipe with its standard input and output. The process is killed when ctx ends or the recipe is over its limit of time, and it ends
// with this one.
func RunRecipe(ctx context.Context, command *exec.Cmd, r Recipe) (read uint64, err error) {
	limit := fmt.Errorf("the recipe did not end within %s", r.Limit)
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit+recipeGrace, limit)
	defer cancel()
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	in, err := command.StdinPipe() // stays open until the process has ended
	if err != nil {
		return 0, fmt.Errorf("start the engine: %w", err)
	}
	defer in.Close()
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("start the engine: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	_ = json.NewEncoder(in).Encode(r) // the process has ended if this fails
	exited := command.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	var answer recipeAnswer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		return 0, fmt.Errorf("the engine ended without an answer: %v: %s", cmp.Or(exited, err), lines[len(lines)-1])
	}
	if answer.Error != "" {
		return 0, errors.New(answer.Error)
	}
	return answer.Read, nil
}

// ServeRecipe runs the recipe that stands in stdin and writes its outcome to stdout. The process
// ends when stdin ends, or when it has more memory than a recipe may.
func ServeRecipe(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var r Recipe
	decoder := json.NewDecoder(stdin)
	if err := decoder.Decode(&r); err != nil {
		return fmt.Errorf("read the recipe: %w", err)
	}
	go process.KillAtEnd(stdin)
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { // ends with stop
		defer close(watched)
		if watchRecipe(watching) {
			answer := recipeAnswer{Error: fmt.Sprintf("the recipe took more than %d MB of memory", recipeMemory>>20)}
			_ = json.NewEncoder(stdout).Encode(answer)
			os.Exit(exitEnded)
		}
	}()
	read, err := r.Run(ctx)
	stop()
	<-watched
	answer := recipeAnswer{Read: read}
	if err != nil {
		answer.Error = err.Error()
		if e, ok := errors.AsType[*exception](err); ok {
			answer.Error = e.message
		}
	}
	return json.NewEncoder(stdout).Encode(answer)
}

// watchRecipe reports that the process has more memory than a recipe may. It returns false when ctx ends, and where the system does not
// tell the memory.
func watchRecipe(ctx context.Context) (over bool) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if bytes, err := process.Resident(); err != nil || bytes > recipeMemory {
			return err == nil
		}
	}
}
