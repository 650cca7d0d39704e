package embedded

import (
	"fmt"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Opaque structures of the library in C memory. Go only passes pointers to them.
type (
	cConn   struct{ _ byte }
	cResult struct{ _ byte }
)

// library has the functions of libchdb's C interface that this package calls. Field comments are the names in chdb.h.
type library struct {
	connect func(argc int32, argv **byte) **cConn // chdb_connect
	close   func(conn **cConn)                    // chdb_close_conn

	// chdb_query_with_params_n: strings as pointer and length, parameters as four parallel arrays.
	query func(conn *cConn, query *byte, queryLen uintptr, format *byte, formatLen uintptr,
		names **byte, nameLens *uintptr, values **byte, valueLens *uintptr, count uintptr) *cResult

	destroy      func(*cResult)         // chdb_destroy_query_result
	buffer       func(*cResult) *byte   // chdb_result_buffer
	length       func(*cResult) uintptr // chdb_result_length
	failure      func(*cResult) *byte   // chdb_result_error
	elapsed      func(*cResult) float64 // chdb_result_elapsed, seconds
	resultRows   func(*cResult) uint64  // chdb_result_rows_read
	resultBytes  func(*cResult) uint64  // chdb_result_bytes_read
	readRows     func(*cResult) uint64  // chdb_result_storage_rows_read
	readBytes    func(*cResult) uint64  // chdb_result_storage_bytes_read
	writtenRows  func(*cResult) uint64  // chdb_result_rows_written
	writtenBytes func(*cResult) uint64  // chdb_result_bytes_written
}

// libraries has the loaded libraries by path. A library is loaded once and never unloaded.
var libraries sync.Map

// loadLibrary loads libchdb and disables its signal handlers. It ignores SIGPIPE in the whole process.
func loadLibrary(path string) (lib *library, err error) {
	if lib, ok := libraries.Load(path); ok {
		return lib.(*library), nil
	}
	defer func() {
		if r := recover(); r != nil { // purego panics if a function is missing
			lib, err = nil, fmt.Errorf("load %s: %v", path, r)
		}
	}()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	var signals func(enabled int32)
	lib = new(library)
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &signals,
		"chdb_connect":                     &lib.connect,
		"chdb_close_conn":                  &lib.close,
		"chdb_query_with_params_n":         &lib.query,
		"chdb_destroy_query_result":        &lib.destroy,
		"chdb_result_buffer":               &lib.buffer,
		"chdb_result_length":               &lib.length,
		"chdb_result_error":                &lib.failure,
		"chdb_result_elapsed":              &lib.elapsed,
		"chdb_result_rows_read":            &lib.resultRows,
		"chdb_result_bytes_read":           &lib.resultBytes,
		"chdb_result_storage_rows_read":    &lib.readRows,
		"chdb_result_storage_bytes_read":   &lib.readBytes,
		"chdb_result_rows_written":         &lib.writtenRows,
		"chdb_result_bytes_written":        &lib.writtenBytes,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	signals(0)
	// Threads of the library write to pipes. Go ends the process when a foreign thread gets SIGPIPE. With the signal ignored, the write
	// fails with EPIPE instead.
	signal.Ignore(syscall.SIGPIPE)
	libraries.Store(path, lib)
	return lib, nil
}

// open opens a connection with command line arguments. It returns nil on failure.
func (l *library) open(args ...string) **cConn {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]*byte, len(args)+1) // the last one stays NULL, as in C
	for i, arg := range args {
		argv[i] = cString(&pin, arg)
	}
	return l.connect(int32(len(args)), &argv[0])
}

// param is a query parameter. The engine substitutes value for {name:Type} after parsing.
type param struct{ name, value string }

// run executes a statement. The caller destroys the result, which may be nil.
func (l *library) run(conn *cConn, query, format string, params []param) *cResult {
	var pin runtime.Pinner
	defer pin.Unpin()
	n := len(params)
	names, nameLens := make([]*byte, n+1), make([]uintptr, n+1) // one more than needed, so that element 0 exists
	values, valueLens := make([]*byte, n+1), make([]uintptr, n+1)
	for i, p := range params {
		names[i], nameLens[i] = cString(&pin, p.name), uintptr(len(p.name))
		values[i], valueLens[i] = cString(&pin, p.value), uintptr(len(p.value))
	}
	return l.query(conn, cString(&pin, query), uintptr(len(query)), cString(&pin, format), uintptr(len(format)),
		&names[0], &nameLens[0], &values[0], &valueLens[0], uintptr(n))
}

// cString returns a NUL-terminated copy of s, pinned until pin.Unpin.
func cString(pin *runtime.Pinner, s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	pin.Pin(&b[0])
	return &b[0]
}

// goString copies a NUL-terminated C string, "" for NULL.
func goString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// output copies a result's bytes out of C memory.
func (l *library) output(r *cResult) []byte {
	p, n := l.buffer(r), l.length(r)
	if p == nil || n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice(p, n)...)
}
