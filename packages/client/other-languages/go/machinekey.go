package keyward

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MachineKey is a machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file.
type MachineKey struct {
	MachineID string // for the option MachineID: "mk1_" and the SHA-256 of the public key in base64url
	IsNew     bool   // whether the call has created the key
	// IsEphemeral reports whether the key is lost when the container is replaced or the machine restarts, because its folder is in a
	// layer of a container or in memory. It is always false on systems other than Linux.
	IsEphemeral bool
}

// OpenMachineKey returns the key of this machine from a file, and creates it if the file is missing. Only the owner can read the file.
// Processes that start at the same time get the same key. It returns an error when the file cannot be created, or does not contain
// an Ed25519 key.
func OpenMachineKey(path string) (MachineKey, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return MachineKey{}, err
	}
	key, err := readMachineKey(path)
	isNew := false
	if errors.Is(err, fs.ErrNotExist) {
		if isNew, err = createMachineKey(path); err == nil {
			key, err = readMachineKey(path)
		}
	}
	if err != nil {
		return MachineKey{}, err
	}
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return MachineKey{"mk1_" + base64.RawURLEncoding.EncodeToString(sum[:]), isNew, isEphemeral(folder)}, nil
}

func readMachineKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, _ := x509.ParsePKCS8PrivateKey(block.Bytes); key != nil {
			if key, ok := key.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("the file %s does not contain a machine key; delete it to create a new one, which needs another slot", path)
}

// createMachineKey creates the file, complete and flushed to the disk. It returns false if another process has created it meanwhile.
func createMachineKey(path string) (bool, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return false, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return false, err
	}
	draft, err := writeDraft(filepath.Dir(path), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		return false, err
	}
	defer os.Remove(draft)
	// Unlike a rename, a link never replaces the key of another process.
	err = os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func isEphemeral(folder string) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	real, realErr := filepath.EvalSymlinks(folder)
	real, absErr := filepath.Abs(real)
	if err != nil || realErr != nil || absErr != nil {
		return false
	}
	deepest, kind := "", ""
	for _, line := range strings.Split(string(mounts), "\n") {
		before, after, isMount := strings.Cut(line, " - ")
		if !isMount {
			continue
		}
		// The file escapes blanks and backslashes in octal numbers, as string literals of Go do.
		point, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.Fields(before)[4], `"`, `\"`) + `"`)
		// Of two mounts at the same place, the later one is visible.
		if err == nil && len(point) >= len(deepest) && strings.HasPrefix(real+"/", strings.TrimSuffix(point, "/")+"/") {
			deepest, kind = point, strings.Fields(after)[0]
		}
	}
	return strings.Contains(" overlay aufs tmpfs ramfs ", " "+kind+" ") && kind != ""
}
