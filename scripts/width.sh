#!/bin/sh
# Reports lines of Go code that are wider than 140 columns; a tab counts 4. The text of raw strings does not count, for it is data. Exits 1
# if it finds any.
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.go' | LC_ALL=C xargs awk -v max=140 '
	FNR == 1 { raw = 0 }
	!raw && !/`/ && length($0) <= max - 40 { next }
	{
		text = $0
		kept = "" # the line without the text of raw strings
		while (text != "") {
			if (raw) {
				if (!(at = index(text, "`"))) break
				raw = 0
				text = substr(text, at + 1)
			} else if (!match(text, /`|"|\/\/|\047/)) {
				kept = kept text
				break
			} else {
				quote = substr(text, RSTART, RLENGTH)
				kept = kept substr(text, 1, RSTART + RLENGTH - 1)
				text = substr(text, RSTART + RLENGTH)
				if (quote == "//") {
					kept = kept text
					break
				}
				if (quote == "`") raw = 1
				else if (quote == "\"" && match(text, /^([^"\\]|\\.)*"/) || quote == "\047" && match(text, /^([^\047\\]|\\.[^\047]*)\047/)) {
					kept = kept substr(text, 1, RLENGTH)
					text = substr(text, RLENGTH + 1)
				}
			}
		}
		gsub(/[\200-\277]/, "", kept) # a letter of several bytes is one column
		width = length(kept) + 3 * gsub(/\t/, "&", kept)
		if (width > max && !/^\/\/go:/) {
			printf "%s:%d: %d columns, at most %d\n", FILENAME, FNR, width, max
			found = 1
		}
	}
	END { exit found }
'
