package facts

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetTable reads the rows of a Parquet file.
type parquetTable struct {
	file    io.Closer
	rows    *parquet.GenericReader[any]
	columns []parquetColumn // by index of the leaf
	buffer  [1]parquet.Row
	row     int64
	rowsMax int64
	size    int64 // bytes
}

type parquetColumn struct {
	name string
	leaf parquet.Type
}

func newParquetTable(f interface {
	io.ReaderAt
	io.Closer
}, size int64, others bool) (t *parquetTable, err error) {
	defer damaged(&err)
	file, err := parquet.OpenFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("read Parquet file: %w", err)
	}
	t = &parquetTable{file: f, rows: parquet.NewGenericReader[any](file, file.Schema()), rowsMax: file.NumRows(), size: size}
	var names []string
	for _, path := range file.Schema().Columns() {
		if slices.Contains(names, path[0]) {
			return nil, fmt.Errorf("column %q is a structure or map: columns hold single values and lists", path[0])
		}
		names = append(names, path[0])
		leaf, _ := file.Schema().Lookup(path...)
		t.columns = append(t.columns, parquetColumn{path[0], leaf.Node.Type()})
	}
	if err := checkColumns(names, others); err != nil {
		return nil, err
	}
	return t, nil
}

// damaged recovers from a panic and sets err: the library panics on some damaged files.
func damaged(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged Parquet file: %v", p)
	}
}

func (t *parquetTable) next() (line int, cells []cell, err error) {
	defer damaged(&err)
	t.buffer[0] = t.buffer[0][:0]
	if n, err := t.rows.ReadRows(t.buffer[:]); n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return 0, nil, err
	}
	t.row++
	line = int(t.row)
	cells = make([]cell, 0, len(t.columns))
	t.buffer[0].Range(func(index int, values []parquet.Value) bool {
		column := t.columns[index]
		texts := make([]string, len(values))
		for i, v := range values {
			if texts[i], err = parquetText(column.leaf, v); err != nil {
				err = Fault{line, 0, column.name, err.Error()}
				return false
			}
		}
		cells = append(cells, cell{name: column.name, text: strings.Join(texts, "|"), line: line})
		return true
	})
	return line, cells, err
}

func (t *parquetTable) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// progress estimates the bytes read from the share of rows read: the library does not
// report its position.
func (t *parquetTable) progress() (int64, int64) {
	return int64(float64(t.size) * float64(t.row) / float64(max(t.rowsMax, 1))), t.size
}

func (t *parquetTable) Close() error { return errors.Join(t.rows.Close(), t.file.Close()) }

// parquetText returns a value as in a CSV file. NULL is the empty text.
func parquetText(leaf parquet.Type, v parquet.Value) (string, error) {
	if v.IsNull() {
		return "", nil
	}
	if logical := leaf.LogicalType(); logical != nil {
		switch l := logical.Value.(type) {
		case *format.DateType:
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), nil
		case *format.TimestampType:
			unit := l.Unit.Value.Duration()
			perSecond := int64(time.Second / unit)
			return time.Unix(v.Int64()/perSecond, v.Int64()%perSecond*int64(unit)).UTC().Format(time.DateOnly), nil
		case *format.DecimalType:
			return decimalText(v, l.Scale)
		case *format.IntType:
			if !l.IsSigned && leaf.Kind() == parquet.Int64 {
				return strconv.FormatUint(v.Uint64(), 10), nil
			}
			if !l.IsSigned {
				return strconv.FormatUint(uint64(v.Uint32()), 10), nil
			}
		}
	}
	switch leaf.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean()), nil
	case parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10), nil
	case parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10), nil
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), nil
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64), nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return strings.TrimRight(string(v.ByteArray()), "\x00"), nil
	}
	return "", fmt.Errorf("a value of type %s does not fit into a column", leaf)
}

// decimalText returns a decimal number, which is stored as an unscaled integer.
func decimalText(v parquet.Value, scale int32) (string, error) {
	whole := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		whole.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		whole.SetInt64(v.Int64())
	default: // two's complement, highest byte first
		text := v.ByteArray()
		whole.SetBytes(text)
		if len(text) > 0 && text[0]&0x80 != 0 {
			whole.Sub(whole, new(big.Int).Lsh(big.NewInt(1), uint(8*len(text))))
		}
	}
	if scale < 0 || scale > 76 {
		return "", fmt.Errorf("a decimal of scale %d does not fit into a column", scale)
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(whole, ten).FloatString(int(scale)), nil
}
