#!/bin/sh
# Reports words of comments and documents that have a better one in docs/glossary.md. The list is
# scripts/words.txt. Exits 1 if it finds any.
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.go' '*.lua' '*.sh' '*.sql' '*.md' '*.yaml' Makefile |
	grep -v -e /testdata/ -e '^CHANGELOG.md$' -e '^docs/glossary.md$' -e '^scripts/words' |
	xargs awk -F '\t' '
		FNR == 1 { list = FILENAME == "scripts/words.txt" }
		list && /^[^#]/ { better[$1] = $2 }
		list { next }
		{ text = tolower($0) }
		# Of code only comments count.
		FILENAME ~ /\.go$/ { if (!match(text, /(^|[ \t])\/\/ /)) next; text = substr(text, RSTART) }
		FILENAME ~ /\.lua$/ { if (!match(text, /--/)) next; text = substr(text, RSTART) }
		FILENAME ~ /(\.sh|Makefile)$/ { if (!match(text, /# /)) next; text = substr(text, RSTART) }
		{
			for (word in better)
				if (match(" " text " ", "[^a-z0-9_-]" word "[^a-z0-9_-]")) {
					printf "%s:%d: %s: use %s\n", FILENAME, FNR, substr(" " text " ", RSTART + 1, RLENGTH - 2), better[word]
					found = 1
				}
		}
		END { exit found }
	' scripts/words.txt
