package lakefs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// Scheme begins the URL of every file.
	Scheme = "pgvfs://"

	volumeBytesMax = 63
	pathBytesMax   = 1024
)

// SplitURL takes pgvfs://<volume>/<path> apart. The path is everything after the volume's slash, as it is: nothing is
// decoded or cleaned, and it may be empty. Fails for another scheme and for a volume that cannot be.
func SplitURL(url string) (volume, path string, err error) {
	rest, ok := strings.CutPrefix(url, Scheme)
	if !ok {
		return "", "", fmt.Errorf("%q is not a %s URL", url, Scheme)
	}
	volume, path, _ = strings.Cut(rest, "/")
	if err := checkVolume(volume); err != nil {
		return "", "", fmt.Errorf("%q: %w", url, err)
	}
	return volume, path, nil
}

// fileURL is SplitURL's opposite.
func fileURL(volume, path string) string { return Scheme + volume + "/" + path }

// CheckVolume says whether a volume may be called so, for stores of other packages. The table has the same rule.
func CheckVolume(volume string) error { return checkVolume(volume) }

// checkVolume is the constraint file_shape's rule for volumes.
func checkVolume(volume string) error {
	if len(volume) == 0 || len(volume) > volumeBytesMax {
		return fmt.Errorf("volume %q must have 1 to %d bytes", volume, volumeBytesMax)
	}
	for i := range len(volume) {
		c := volume[i]
		alnum := (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
		if !alnum && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return fmt.Errorf("volume %q must be made of a-z, 0-9 and, after the first, of . _ -", volume)
		}
	}
	return nil
}

// CheckPath says whether a file may have a path. Paths that only look odd (a//b, ../c) are names like any other.
func CheckPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("a file's path must not be empty")
	case strings.HasSuffix(path, "/"):
		return fmt.Errorf("path %q is that of a directory", path)
	case len(path) > pathBytesMax:
		return fmt.Errorf("path of %d bytes is longer than %d", len(path), pathBytesMax)
	case !storable(path):
		return fmt.Errorf("path %q is not UTF-8 without NUL", path)
	}
	return nil
}

// storable reports whether PostgreSQL takes the text as a parameter. What it does not, no row can hold.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// prefixEnd is the least text greater than everything that begins with prefix; not bounded if there is none. In UTF-8
// the order of bytes is that of code points, so the last one that can be is made the next.
func prefixEnd(prefix string) (end string, bounded bool) {
	for len(prefix) > 0 {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if last < utf8.MaxRune {
			return prefix + string(nextRune(last)), true
		}
	}
	return "", false
}

// nextRune skips the surrogates, which UTF-8 leaves out.
func nextRune(r rune) rune {
	const surrogateMin, surrogateMax = 0xD800, 0xDFFF
	if r+1 == surrogateMin {
		return surrogateMax + 1
	}
	return r + 1
}
