package source

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Bounds of a list.
const (
	rankMax        = 2_000_000 // ranks from here on count as not listed
	rankLineMax    = 300       // bytes
	rankListMin    = 1000      // fewer domains are an error
	rankUnpackMax  = 128 << 20 // bytes of a list, decompressed
	rankFaultyLine = 100       // one line in so many may be malformed
)

// ranking is the ranks of domains, in 8 bytes per domain: 43 bits of a hash of the name above the
// 21 bits of the rank. A lookup of an unlisted domain finds a rank once in ten million lookups.
// It is safe for concurrent reads.
type ranking []uint64 // ascending

const rankBits = 21 // rankMax fits

// rankKey returns the hash of a domain in the upper bits.
func rankKey(domain []byte) uint64 { return xxhash.Sum64(domain) >> rankBits << rankBits }

// parseRanking parses lines "rank,domain", plain or as the first .csv file of a zip archive. The
// better rank of a duplicate counts. Ranks from rankMax on are skipped.
func parseRanking(list io.ReaderAt, size int64) (ranking, error) {
	magic := make([]byte, 2)
	if _, err := list.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	if string(magic) != "PK" {
		return readRanking(io.NewSectionReader(list, 0, size), rankUnpackMax)
	}
	archive, err := zip.NewReader(list, size)
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, ".csv") {
			continue
		}
		unpacked, err := file.Open()
		if err != nil {
			return nil, fmt.Errorf("unpack the list: %w", err)
		}
		defer unpacked.Close()
		return readRanking(unpacked, rankUnpackMax)
	}
	return nil, errors.New("the archive has no .csv file")
}

// readRanking reads lines, at most maxBytes in total.
func readRanking(list io.Reader, maxBytes int64) (ranking, error) {
	limited := &io.LimitedReader{R: list, N: maxBytes + 1}
	lines := bufio.NewScanner(bufio.NewReaderSize(limited, 64<<10))
	lines.Buffer(make([]byte, 0, rankLineMax), rankLineMax)
	r := make(ranking, 0, 1<<20)
	odd := 0
	for lines.Scan() {
		line := bytes.TrimRight(lines.Bytes(), "\r ")
		number, domain, ok := bytes.Cut(line, []byte(","))
		rank, err := strconv.ParseUint(string(number), 10, 32)
		if !ok || err != nil || rank == 0 || len(domain) == 0 {
			odd++
			continue
		}
		if rank >= rankMax || len(r) >= rankMax {
			continue
		}
		r = append(r, rankKey(bytes.ToLower(domain))|rank)
	}
	switch err := lines.Err(); {
	case limited.N <= 0:
		return nil, fmt.Errorf("the list is larger than %d bytes", maxBytes)
	case err != nil:
		return nil, fmt.Errorf("read the list: %w", err)
	case odd*rankFaultyLine > len(r):
		return nil, fmt.Errorf("%d lines of the list are not \"rank,domain\", %d are", odd, len(r))
	case len(r) < rankListMin:
		return nil, fmt.Errorf("the list has %d domains, fewer than %d", len(r), rankListMin)
	}
	slices.Sort(r)
	// The better rank of a duplicate comes first.
	return slices.Clip(slices.CompactFunc(r, func(a, b uint64) bool { return a>>rankBits == b>>rankBits })), nil
}

// rank returns the rank of a domain in lower case, false if it is not listed.
func (r ranking) rank(domain string) (rank int, listed bool) {
	key := rankKey([]byte(domain))
	i, _ := slices.BinarySearch(r, key)
	if i == len(r) || r[i]>>rankBits != key>>rankBits {
		return 0, false
	}
	return int(r[i] - key), true
}
