package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// depthMax is how deep an answer may nest.
const depthMax = 64

// decodeJSON reads the whole of body as one JSON value. Fields that into does not
// have are skipped. An answer that nests deeper than 64 levels is refused.
func decodeJSON(body io.Reader, into any) error {
	d := json.NewDecoder(&shallow{r: body})
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.Join(errors.New("read the answer: there is more after its end"), err)
	}
	return nil
}

var errTooDeep = errors.New("the answer nests too deep")

// shallow passes JSON on until it nests too deep.
type shallow struct {
	r               io.Reader
	depth           int
	quoted, escaped bool
}

func (s *shallow) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	for _, c := range p[:n] {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped = c == '\\'
			s.quoted = c != '"'
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			if s.depth++; s.depth > depthMax {
				return 0, errTooDeep
			}
		case c == '}' || c == ']':
			s.depth--
		}
	}
	return n, err
}

// eachMember reads a body as one JSON object and calls read for each member, which
// must decode or skip its value. Values are not kept.
func eachMember(body io.Reader, read func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(&shallow{r: body})
	if err := members(d, func(key string) error { return read(key, d) }); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// members reads an object at the decoder's place.
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
			return fmt.Errorf("%v is no name of a member", key)
		}
		if err := read(text); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// elements reads an array at the decoder's place and calls read for each element
// until it returns false.
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

func expect(d *json.Decoder, delim json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != delim {
		return fmt.Errorf("%.50v where %v should begin", token, delim)
	}
	return nil
}

// skip passes over the value at the decoder's place.
func skip(d *json.Decoder) error { return d.Decode(&skipped{}) }

type skipped struct{}

// UnmarshalJSON keeps nothing.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// oneOrMany reads a value that may stand alone or in an array.
type oneOrMany[T any] []T

// UnmarshalJSON takes a value that stands alone for an array of one.
func (o *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(o))
	}
	*o = make(oneOrMany[T], 1)
	return json.Unmarshal(text, &(*o)[0])
}
