package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Find returns the path of libchdb: $COMPANYSCORE_LIBCHDB if set, else that in the last .deps/libchdb-<version>/ by name, beside the
// executable, in the working directory or in one of its parents. scripts/libchdb.sh downloads it and defines the version.
func Find() (string, error) {
	if path := os.Getenv("COMPANYSCORE_LIBCHDB"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("find libchdb: COMPANYSCORE_LIBCHDB: %w", err)
		}
		return path, nil
	}
	var roots []string
	if exe, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(exe); err == nil {
			exe = target
		}
		roots = append(roots, filepath.Dir(exe))
	}
	if dir, err := os.Getwd(); err == nil {
		for parent := ""; dir != parent; dir, parent = filepath.Dir(dir), dir {
			roots = append(roots, dir)
		}
	}
	for _, root := range roots {
		found, _ := filepath.Glob(filepath.Join(root, ".deps", "libchdb-*", libraryName()))
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("find libchdb: no .deps/libchdb-*/%s beside the program or above the working directory: run `make deps`, or "+
		"set COMPANYSCORE_LIBCHDB", libraryName())
}

func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libchdb.dylib"
	}
	return "libchdb.so"
}
