package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"companyscore/clickhouse/embedded/roster"
)

// advice returns what an analyst can do about an exception of a limit, or "".
func advice(exception string, l roster.Limits) string {
	switch exception {
	case "MEMORY_LIMIT_EXCEEDED":
		return fmt.Sprintf("This is the analyst's limit of %s of memory for a statement, or what max_memory_usage asked for: "+
			"select fewer columns, narrow it by domain or time, or join the smaller side last", size(l.MemoryBytes))
	case "TIMEOUT_EXCEEDED":
		return fmt.Sprintf("This is the analyst's limit of time, %d s or what max_execution_time asked for: "+
			"narrow the statement by domain or time, or aggregate first", l.Seconds)
	case "TOO_MANY_ROWS_OR_BYTES":
		return fmt.Sprintf("This is the analyst's limit for a result, %d rows or %s, or what max_result_rows or max_result_bytes asked "+
			"for: "+
			"add a LIMIT, aggregate, or export in parts, such as one range of domains after the other", l.Rows, size(l.Bytes))
	case "TOO_MANY_SIMULTANEOUS_QUERIES":
		return "This is the analyst's limit of statements at a time: wait for those under way, and run one after the other"
	}
	return ""
}

// size returns a number of bytes in GiB if they are whole, else in MiB.
func size(bytes uint64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// forAnalyst returns e without the names of private tables, the paths of the machine and the name of the engine's own user. It adds advice
// if e is about a limit of the analyst.
func (s *Server) forAnalyst(e *exception, u *user) *exception {
	message := u.guard.private.ReplaceAllString(e.message, "a private table")
	message = strings.ReplaceAll(message, s.cfg.Path, "DATA")
	if rest, ok := strings.CutPrefix(message, "default: "); ok {
		message = u.name + ": " + rest
	}
	if text := advice(e.name, u.guard.limits); text != "" {
		message += ". " + text
	}
	return &exception{e.code, e.name, message}
}

// inText returns the error of formatting an analyst's text as an error of that text, with line and column.
func inText(err error, text string) error {
	e, ok := errors.AsType[*exception](err)
	if !ok {
		return err
	}
	message, _, _ := strings.Cut(e.message, ": In scope SELECT formatQuerySingleLine(")
	if strings.TrimSpace(text) == "" {
		message = "Syntax error: Empty query"
	}
	if m := failedAt.FindStringSubmatchIndex(message); m != nil && !strings.Contains(message, "(line ") {
		if position, err := strconv.Atoi(message[m[2]:m[3]]); err == nil && position > 0 && position <= len(text)+1 {
			before := text[:position-1]
			line, column := strings.Count(before, "\n")+1, position-1-strings.LastIndex(before, "\n")
			message = message[:m[1]] + fmt.Sprintf(" (line %d, col %d)", line, column) + message[m[1]:]
		}
	}
	return &exception{e.code, e.name, message}
}

// failedAt matches the byte position in a syntax error, from 1, and the token there.
var failedAt = regexp.MustCompile(`failed at position (\d+)(?: \((?:[^()]|\(\))*\))?`)
