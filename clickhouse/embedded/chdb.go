package embedded

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The opaque C handles. Their memory belongs to the library; Go only carries the addresses.
type (
	cConn   struct{ _ byte }
	cResult struct{ _ byte }
)

// library holds the C functions of libchdb that we call. The fields carry the C names so that they can be found in chdb.h.
type library struct {
	connect      func(argc int32, argv **byte) **cConn
	closeConn    func(conn **cConn)
	query        func(conn *cConn, query *byte, queryLen uintptr, format *byte, formatLen uintptr, names **byte, nameLens *uintptr, values **byte, valueLens *uintptr, params uintptr) *cResult
	streamQuery  func(conn *cConn, query *byte, queryLen uintptr, format *byte, formatLen uintptr, names **byte, nameLens *uintptr, values **byte, valueLens *uintptr, params uintptr) *cResult
	streamFetch  func(conn *cConn, stream *cResult) *cResult
	streamCancel func(conn *cConn, stream *cResult)
	destroy      func(result *cResult)
	buffer       func(result *cResult) *byte
	length       func(result *cResult) uintptr
	failure      func(result *cResult) *byte
	elapsed      func(result *cResult) float64
	rowsRead     func(result *cResult) uint64
	bytesRead    func(result *cResult) uint64
	storageRows  func(result *cResult) uint64
	storageBytes func(result *cResult) uint64
	rowsWritten  func(result *cResult) uint64
	bytesWritten func(result *cResult) uint64
}

func openLibrary(path string) (lib *library, err error) {
	defer func() { // purego panics on a missing symbol
		if r := recover(); r != nil {
			err = fmt.Errorf("bind %s: %v", path, r)
		}
	}()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	lib = new(library)
	for name, fn := range map[string]any{
		"chdb_connect":                    &lib.connect,
		"chdb_close_conn":                 &lib.closeConn,
		"chdb_query_with_params_n":        &lib.query,
		"chdb_stream_query_with_params_n": &lib.streamQuery,
		"chdb_stream_fetch_result":        &lib.streamFetch,
		"chdb_stream_cancel_query":        &lib.streamCancel,
		"chdb_destroy_query_result":       &lib.destroy,
		"chdb_result_buffer":              &lib.buffer,
		"chdb_result_length":              &lib.length,
		"chdb_result_error":               &lib.failure,
		"chdb_result_elapsed":             &lib.elapsed,
		"chdb_result_rows_read":           &lib.rowsRead,
		"chdb_result_bytes_read":          &lib.bytesRead,
		"chdb_result_storage_rows_read":   &lib.storageRows,
		"chdb_result_storage_bytes_read":  &lib.storageBytes,
		"chdb_result_rows_written":        &lib.rowsWritten,
		"chdb_result_bytes_written":       &lib.bytesWritten,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	var signals func(enabled int32)
	purego.RegisterLibFunc(&signals, handle, "chdb_set_signal_handlers_enabled")
	signals(0) // the host's signals stay with the Go runtime
	return lib, nil
}

func (l *library) open(args ...string) **cConn {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]*byte, len(args)+1) // NULL terminated
	for i, a := range args {
		argv[i] = &append([]byte(a), 0)[0]
		pin.Pin(argv[i])
	}
	return l.connect(int32(len(args)), &argv[0])
}

type param struct{ name, value string }

type start func(conn *cConn, query *byte, queryLen uintptr, format *byte, formatLen uintptr, names **byte, nameLens *uintptr, values **byte, valueLens *uintptr, params uintptr) *cResult

func (l *library) run(fn start, conn *cConn, query, format string, params []param) *cResult {
	var pin runtime.Pinner
	defer pin.Unpin()
	data := func(s string) *byte {
		p := unsafe.StringData(s + "\x00") // never NULL
		pin.Pin(p)
		return p
	}
	n := len(params)
	names, values := make([]*byte, n+1), make([]*byte, n+1)
	nameLens, valueLens := make([]uintptr, n+1), make([]uintptr, n+1)
	for i, p := range params {
		names[i], nameLens[i] = data(p.name), uintptr(len(p.name))
		values[i], valueLens[i] = data(p.value), uintptr(len(p.value))
	}
	return fn(conn, data(query), uintptr(len(query)), data(format), uintptr(len(format)),
		&names[0], &nameLens[0], &values[0], &valueLens[0], uintptr(n))
}

// cString copies a NUL-terminated C string.
func cString(p *byte) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for ; *p != 0; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		b.WriteByte(*p)
	}
	return b.String()
}
