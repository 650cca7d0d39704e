package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// decodeJSON decodes the whole of body as one JSON value into the value that into
// points to. It skips unknown fields. encoding/json bounds the nesting.
func decodeJSON(body io.Reader, into any) error {
	d := json.NewDecoder(body)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.Join(errors.New("read the answer: data after the JSON value"), err)
	}
	return nil
}

// eachMember reads body as one JSON object and calls read for each member. read must
// decode or skip the value.
func eachMember(body io.Reader, read func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(body)
	if err := members(d, func(key string) error { return read(key, d) }); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// eachElement reads body as one JSON array and calls read for each element until it
// returns false. read must decode or skip the element.
func eachElement(body io.Reader, read func(d *json.Decoder) (more bool, err error)) error {
	d := json.NewDecoder(body)
	if err := elements(d, func() (bool, error) { return read(d) }); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// members reads the next value as an object and calls read for each name.
func members(d *json.Decoder, read func(key string) error) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		text, ok := key.(string)
		if !ok {
			return fmt.Errorf("%v is not a member name", key)
		}
		if err := read(text); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// elements reads the next value as an array and calls read for each element until it
// returns false.
func elements(d *json.Decoder, read func() (more bool, err error)) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		if more, err := read(); err != nil || !more {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// expect reads the next token, which must be delim.
func expect(d *json.Decoder, delim json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != delim {
		return fmt.Errorf("got %.50v, want %v", token, delim)
	}
	return nil
}

// skip reads the next value and drops it.
func skip(d *json.Decoder) error { return d.Decode(&skipped{}) }

// skipped is a value that is read and dropped.
type skipped struct{}

// UnmarshalJSON drops the value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// oneOrMany decodes a single value or an array of values.
type oneOrMany[T any] []T

// UnmarshalJSON decodes a single value as an array of one.
func (o *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(o))
	}
	*o = make(oneOrMany[T], 1)
	return json.Unmarshal(text, &(*o)[0])
}
