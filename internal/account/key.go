package account

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A key is a prefix for its mode, 24 random characters (142 bits), and a checksum of 6
// characters over all of them.
const (
	livePrefix  = "svc_live_"
	testPrefix  = "svc_test_"
	randomLen   = 24
	checksumLen = 6
	// KeyLen is the length of a key in bytes.
	KeyLen        = len(livePrefix) + randomLen + checksumLen
	shownLen      = len(livePrefix) + 4
	alphabet      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomByteMax = 256 - 256%len(alphabet) // bytes from here on are skipped, they would bias the result
)

// KeysMax bounds the keys of an account that are not revoked.
const KeysMax = 100

// CheckRoom returns ErrTooManyKeys unless an account with these keys may have one more. Of several
// processes that create keys at once, each may create one too many.
func CheckRoom(keys []Key) error {
	valid := 0
	for _, key := range keys {
		if key.RevokedAt.IsZero() {
			valid++
		}
	}
	if valid >= KeysMax {
		return ErrTooManyKeys
	}
	return nil
}

// NewKey returns a new key of an account and its text. The text is not stored anywhere. The
// caller must store the key.
func NewKey(accountID, name string, mode Mode, now time.Time) (Key, string) {
	prefix := livePrefix
	if mode == Test {
		prefix = testPrefix
	}
	raw := prefix + randomText(randomLen)
	raw += checksum(raw)
	return Key{
		ID:        uuid.Must(uuid.NewV7()).String(),
		AccountID: accountID,
		Name:      name,
		Prefix:    raw[:shownLen],
		Mode:      mode,
		Hash:      sha256.Sum256([]byte(raw)),
		CreatedAt: now,
	}, raw
}

// ParseKey returns the mode and the SHA-256 of a key, or ErrMalformed if the text is not a
// key. It does not check that the key exists.
func ParseKey(raw string) (Mode, [32]byte, error) {
	mode := Live
	switch {
	case len(raw) != KeyLen:
		return "", [32]byte{}, ErrMalformed
	case strings.HasPrefix(raw, testPrefix):
		mode = Test
	case !strings.HasPrefix(raw, livePrefix):
		return "", [32]byte{}, ErrMalformed
	}
	body, sum := raw[:KeyLen-checksumLen], raw[KeyLen-checksumLen:]
	if checksum(body) != sum {
		return "", [32]byte{}, ErrMalformed
	}
	return mode, sha256.Sum256([]byte(raw)), nil
}

func randomText(n int) string {
	text := make([]byte, 0, n)
	var buf [64]byte
	for {
		rand.Read(buf[:]) // never fails, by its documentation
		for _, b := range buf {
			if int(b) >= randomByteMax {
				continue
			}
			if text = append(text, alphabet[int(b)%len(alphabet)]); len(text) == n {
				return string(text)
			}
		}
	}
}

func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var text [checksumLen]byte
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return string(text[:])
}
