package keyward

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

const maxLicenses = 10

// state is the content of the storage.
type state struct {
	Version        int              `json:"version"`
	LatestSeenMs   float64          `json:"latestSeenMs"`
	LatestSignedMs float64          `json:"latestSignedMs"`
	Licenses       []*storedLicense `json:"licenses"`
}

type storedLicense struct {
	LicenseKey string  `json:"licenseKey"`
	File       string  `json:"file"`
	RejectedAs *string `json:"rejectedAs"`
}

func (s *state) latestSeen() time.Time { return time.UnixMilli(int64(s.LatestSeenMs)) }

func (s *state) find(licenseKey string) *storedLicense {
	for _, stored := range s.Licenses {
		if stored.LicenseKey == licenseKey {
			return stored
		}
	}
	return nil
}

func (s *state) add(licenseKey, file string) {
	licenses := []*storedLicense{{LicenseKey: licenseKey, File: file}}
	for _, stored := range s.Licenses {
		if stored.LicenseKey != licenseKey && len(licenses) < maxLicenses {
			licenses = append(licenses, stored)
		}
	}
	s.Licenses = licenses
}

// readState returns the stored state. Returns an empty state when the storage fails or contains another text.
func readState(path string) *state {
	read := &state{}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, read) != nil {
		read = &state{}
	}
	kept := &state{Version: 2, LatestSeenMs: read.LatestSeenMs, LatestSignedMs: read.LatestSignedMs, Licenses: []*storedLicense{}}
	for _, stored := range read.Licenses {
		if stored != nil && stored.File != "" {
			kept.Licenses = append(kept.Licenses, stored)
		}
	}
	return kept
}

// write replaces the file atomically: a crash leaves either the old or the new text.
func write(path string, text []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	draft, err := writeDraft(folder, text)
	if err != nil {
		return err
	}
	defer os.Remove(draft)
	return os.Rename(draft, path)
}

// writeDraft writes a new file that only its owner can read, flushed to the disk, and returns its path. On Windows, the permissions of the
// folder apply instead.
func writeDraft(folder string, text []byte) (string, error) {
	draft, err := os.CreateTemp(folder, "*.tmp") // has mode 0600
	if err != nil {
		return "", err
	}
	_, writeErr := draft.Write(text)
	syncErr, closeErr := draft.Sync(), draft.Close()
	if writeErr != nil || syncErr != nil || closeErr != nil {
		os.Remove(draft.Name())
		return "", errors.New("the file could not be written")
	}
	return draft.Name(), nil
}
