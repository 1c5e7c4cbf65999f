package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// readSecret reads the one line of a file or credential.
func readSecret(from PasswordFrom, given *Given) (string, error) {
	file := from.Name
	if from.Kind == PasswordCredential {
		dir := given.variable("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", errors.New("CREDENTIALS_DIRECTORY is not set: the unit has no LoadCredential= or the daemon was not started by systemd")
		}
		file = filepath.Join(dir, from.Name)
	}
	data, err := readLimited(file, 4096)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a file", path)
	} else if err == nil && st.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %d", path, limit, st.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}

func readConfig(path string) ([]byte, error) {
	if path == NoFile {
		return nil, nil
	}
	return readLimited(path, MaxFileSize)
}
