package engine

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/rs/zerolog"
)

const (
	// installHeadStart is how long DuckDB's INSTALL is left alone before pip is tried beside it. A repository that
	// cannot be reached may take minutes to say so, and INSTALL cannot be interrupted while it connects.
	installHeadStart = 5 * time.Second

	// fetchMax bounds all tries together; the files are about 35 MB over the wire.
	fetchMax = 5 * time.Minute

	// footerBytes is the end of an extension: fields of 32 bytes (version, platform and others) and a signature of 256.
	footerBytes, signatureBytes = 512, 256

	extensionSuffix = ".duckdb_extension"
)

// fetched are the extensions to have: those that every engine loads and, for lakes on S3, httpfs.
var fetched = append([]string{"httpfs"}, extensions...)

// way is a source of extensions. It leaves the files of names anywhere below stage.
type way struct {
	name string
	run  func(ctx context.Context, stage string, names []string) error
}

// ways in the order in which they are tried.
var ways = []way{{"DuckDB's INSTALL", installExtensions}, {"pip download", downloadWheels}}

// DuckDBVersion is the version of the DuckDB in this program, such as v1.5.5.
func DuckDBVersion() string { return mapping.LibraryVersion() }

// duckPlatform is what DuckDB calls the machine that it was built for, such as linux_amd64.
var duckPlatform = sync.OnceValues(func() (platform string, err error) {
	err = withDuckDB("", func(c *duckConn) error {
		platform, err = c.text(context.Background(), "SELECT platform FROM pragma_platform()")
		return err
	})
	return platform, wrap(err, "ask DuckDB for its platform")
})

// extensionPath is where an extension is kept, by DuckDB's version and platform as DuckDB itself does it. dataDir is
// Sluice's data directory.
func extensionPath(dataDir, name string) string {
	platform, err := duckPlatform()
	if err != nil {
		platform = "unknown" // FetchExtensions has reported it
	}
	return filepath.Join(dataDir, "extensions", mapping.LibraryVersion(), platform, name+extensionSuffix)
}

// FetchExtensions sees to it that the extensions are in the data directory. Those that are there already are used as
// they are; LOAD checks their signatures. It may be repeated, and by several processes at once.
func FetchExtensions(ctx context.Context, dataDir string, log zerolog.Logger) error {
	if _, err := duckPlatform(); err != nil {
		return err
	}
	missing := missingExtensions(dataDir)
	if len(missing) == 0 {
		return nil
	}
	log.Info().Strs("extensions", missing).Msg("fetching duckdb's extensions")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, fetchMax)
	defer cancel()
	source, err := tryWays(ctx, dataDir, missing)
	if err != nil {
		return fmt.Errorf("fetch DuckDB's extensions %s: %w\nto do it by hand, put the files for DuckDB %s into %q, for example from a machine where `sluice extensions` works",
			strings.Join(missing, ", "), err, mapping.LibraryVersion(), filepath.Dir(extensionPath(dataDir, "")))
	}
	log.Info().Str("by", source).Dur("took", time.Since(begin)).Msg("duckdb's extensions are there")
	return nil
}

// missingExtensions lists what is not there, or not whole.
func missingExtensions(dataDir string) []string {
	var missing []string
	for _, name := range fetched {
		if checkExtension(extensionPath(dataDir, name)) != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// checkExtension reads the end of an extension file, which says for which DuckDB it is. A file that was cut short has
// something else there. The signature is LOAD's to check.
func checkExtension(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	footer := make([]byte, footerBytes)
	if _, err := f.ReadAt(footer, info.Size()-footerBytes); err != nil {
		return fmt.Errorf("%q is not a whole extension", file)
	}
	platform, err := duckPlatform()
	fields := footer[:footerBytes-signatureBytes]
	if err != nil || !bytes.Contains(fields, []byte(mapping.LibraryVersion()+"\x00")) || !bytes.Contains(fields, []byte(platform+"\x00")) {
		return fmt.Errorf("%q is not an extension for DuckDB %s on %s", file, mapping.LibraryVersion(), platform)
	}
	return nil
}

// tryWays starts each way when the one before has failed or had its head start, and returns the name of the first
// that succeeds. The others are cancelled; what they fetched is thrown away.
func tryWays(ctx context.Context, dataDir string, names []string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan error, len(ways))
	won := make(chan string, len(ways))
	var failures error
	for started, running := 0, 0; ; {
		if started < len(ways) {
			go func(w way) {
				if err := runWay(ctx, w, dataDir, names); err != nil {
					outcomes <- fmt.Errorf("%s: %w", w.name, err)
					return
				}
				won <- w.name
			}(ways[started])
			started, running = started+1, running+1
		}
		var next <-chan time.Time
		if started < len(ways) {
			next = time.After(installHeadStart)
		}
		select {
		case name := <-won:
			return name, nil
		case err := <-outcomes:
			failures = errors.Join(failures, err)
			if running--; running == 0 && started == len(ways) {
				return "", failures
			}
		case <-next:
		case <-ctx.Done():
			return "", errors.Join(failures, context.Cause(ctx))
		}
	}
}

// runWay gives a way a folder of its own and moves what it left there to its place.
func runWay(ctx context.Context, w way, dataDir string, names []string) error {
	target := filepath.Dir(extensionPath(dataDir, ""))
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(target, "fetch-") // the same file system, so that a rename is enough
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := w.run(ctx, stage, names); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return publishExtensions(stage, dataDir, names)
}

// publishExtensions moves checked files to their places. Another process may do the same: the files are the same.
func publishExtensions(stage, dataDir string, names []string) error {
	staged := map[string]string{}
	err := filepath.WalkDir(stage, func(file string, _ os.DirEntry, err error) error {
		staged[filepath.Base(file)] = file
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		file, ok := staged[name+extensionSuffix]
		if !ok {
			return fmt.Errorf("it brought no file for %s", name)
		}
		if err := checkExtension(file); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(file, 0o644), os.Rename(file, extensionPath(dataDir, name))); err != nil {
			return err
		}
	}
	return nil
}

// installExtensions lets DuckDB fetch from its own repository. It goes on in the background when ctx ends, since a
// connection attempt inside DuckDB cannot be interrupted; the folder it fills then is removed before it is done.
func installExtensions(ctx context.Context, stage string, names []string) error {
	done := make(chan error, 1)
	go func() {
		done <- withDuckDB(stage, func(c *duckConn) error {
			for _, name := range names {
				if err := c.exec(ctx, "INSTALL "+name); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withDuckDB opens a DuckDB in memory, with extension_directory set if it is not empty, for as long as use takes.
func withDuckDB(extensionDir string, use func(*duckConn) error) error {
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return errors.New("make DuckDB's configuration")
	}
	defer mapping.DestroyConfig(&config)
	if extensionDir != "" && mapping.SetConfig(config, "extension_directory", extensionDir) == mapping.StateError {
		return errors.New("set DuckDB's extension_directory")
	}
	var db mapping.Database
	var message string
	if mapping.OpenExt("", &db, config, &message) == mapping.StateError {
		return fmt.Errorf("open DuckDB: %s", message)
	}
	defer mapping.Close(&db)
	c, err := connect(db)
	if err != nil {
		return err
	}
	defer c.close()
	return use(c)
}

// pips are the commands that pip goes by, the likeliest first.
var pips = [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}}

// downloadWheels fetches the Python packages that hold the same signed files. pip chooses those of its own platform,
// which is this machine's; a wheel for another is noticed when the file is checked.
func downloadWheels(ctx context.Context, stage string, names []string) error {
	args := []string{"download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:", "--dest", stage}
	for _, name := range names {
		args = append(args, "duckdb-extension-"+strings.ReplaceAll(name, "_", "-")+"=="+strings.TrimPrefix(mapping.LibraryVersion(), "v"))
	}
	if err := runPip(ctx, args); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(stage, "*.whl"))
	if err != nil {
		return err
	}
	for _, wheel := range wheels {
		if err := unzipExtension(wheel, stage); err != nil {
			return fmt.Errorf("unpack %q: %w", filepath.Base(wheel), err)
		}
	}
	return nil
}

// runPip runs the first pip that works.
func runPip(ctx context.Context, args []string) error {
	var failures error
	for _, pip := range pips {
		cmd := exec.CommandContext(ctx, pip[0], append(pip[1:len(pip):len(pip)], args...)...)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		failures = errors.Join(failures, fmt.Errorf("%s: %w %s", strings.Join(pip, " "), err, lastLine(out)))
	}
	return failures
}

// lastLine is where programs say why they failed.
func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// unzipExtension copies the extension out of a wheel. Only a member's last name counts, so that no path in an archive
// leads out of dir.
func unzipExtension(wheel, dir string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, member := range r.File {
		if name := path.Base(member.Name); member.Mode().IsRegular() && strings.HasSuffix(name, extensionSuffix) {
			return unzipMember(member, filepath.Join(dir, name))
		}
	}
	return errors.New("there is no extension in it")
}

// unzipMember copies one member of an archive to a file.
func unzipMember(member *zip.File, file string) error {
	in, err := member.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
