package keyward

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	clockTolerance = 5 * time.Minute
	maxFileLength  = 16 * 1024
	maxInteger     = 1<<53 - 1 // of an entitlement
	timeFormat     = "2006-01-02T15:04:05.000Z"
)

// File is the payload of a verified license file.
type File struct {
	LicenseKey   string
	ProductID    string // "" in files of earlier versions
	MachineID    string // "" in files for all machines
	KeyID        string
	ExpiresAt    *time.Time // nil if the license never expires
	IssuedAt     time.Time
	RefreshAfter time.Time
	GraceEndsAt  *time.Time     // the end of the grace period; nil without one
	Entitlements map[string]any // as in Result; empty if the license has none
}

// FileUser is the app that uses a file.
type FileUser struct {
	LicenseKey string
	ProductID  string // "" accepts files of all products
	MachineID  string // "" rejects files for one machine
}

// Keys maps key ids to public keys.
type Keys map[string]ed25519.PublicKey

// ReadPublicKey reads the standard base64 of an X.509 SubjectPublicKeyInfo.
func ReadPublicKey(text string) (ed25519.PublicKey, error) {
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	if key, ok := key.(ed25519.PublicKey); ok {
		return key, nil
	}
	return nil, errors.New("the public key must be the base64 of an Ed25519 SubjectPublicKeyInfo")
}

// Judge returns GOOD with the file, or the first problem of the file. latestSeen is the latest time that the app has observed,
// or the zero time.
func Judge(text string, keys Keys, user FileUser, now, latestSeen time.Time) (string, *File) {
	outcome, file := Verify(text, keys, user)
	if outcome != "GOOD" {
		return outcome, nil
	}
	passed := file.IssuedAt
	if latestSeen.After(passed) {
		passed = latestSeen
	}
	switch {
	case now.Before(passed.Add(-clockTolerance)):
		return "CLOCK_SET_BACK", nil
	case file.endsAt() != nil && !now.Before(*file.endsAt()):
		return "FILE_EXPIRED", nil
	case !now.Before(file.RefreshAfter):
		return "REFRESH_NEEDED", nil
	}
	return "GOOD", file
}

// Verify verifies the form, the signature, the license, the product and the machine of a file, independent of the time.
func Verify(text string, keys Keys, user FileUser) (string, *File) {
	parts := strings.Split(text, ".")
	if len(text) > maxFileLength || len(parts) != 2 {
		return "MALFORMED", nil
	}
	payload, signature := decode(parts[0]), decode(parts[1])
	file := parsePayload(payload)
	if file == nil || len(signature) != ed25519.SignatureSize {
		return "MALFORMED", nil
	}
	key, ok := keys[file.KeyID]
	if !ok {
		return "UNKNOWN_KEY", nil
	}
	switch {
	case !ed25519.Verify(key, payload, signature):
		return "BAD_SIGNATURE", nil
	case file.LicenseKey != user.LicenseKey:
		return "WRONG_LICENSE", nil
	case user.ProductID != "" && file.ProductID != user.ProductID:
		return "WRONG_PRODUCT", nil
	case file.MachineID != "" && file.MachineID != user.MachineID:
		return "WRONG_MACHINE", nil
	}
	return "GOOD", file
}

// requestCode returns the code of a request for the file of a machine (docs/api.md, F9).
func requestCode(request map[string]string) string {
	text, _ := json.Marshal(request)
	body := "KWR1." + base64.RawURLEncoding.EncodeToString(text)
	sum := sha256.Sum256([]byte(body))
	return body + "." + base64.RawURLEncoding.EncodeToString(sum[:])[:8]
}

// decode decodes base64url without padding. The decoder ignores line breaks, so the text is compared with the encoding of
// the bytes.
func decode(text string) []byte {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || base64.RawURLEncoding.EncodeToString(data) != text {
		return nil
	}
	return data
}

// parsePayload returns nil unless all fields are present with their types. It uses a map, because names of struct fields match
// in any case.
func parsePayload(data []byte) *File {
	payload := parseObject(data)
	policy, ok := payload["policy"].(map[string]any)
	if !ok {
		return nil
	}
	for _, name := range []string{"licenseKey", "licenseId", "customerEmail", "kid"} {
		if text, _ := payload[name].(string); text == "" {
			return nil
		}
	}
	if limit, ok := policy["maxMachines"]; !ok || (limit != nil && !isMachineLimit(limit)) {
		return nil
	}
	kind, _ := policy["type"].(string)
	expires, hasExpiry := policy["expiresAt"]
	if (kind != "PERPETUAL" && kind != "SUBSCRIPTION" && kind != "TRIAL") || !hasExpiry || (kind == "PERPETUAL") != (expires == nil) {
		return nil
	}
	product, _ := payload["productId"].(string)
	machine, _ := payload["machineId"].(string)
	if _, isGiven := payload["machineId"]; isGiven && machine == "" {
		return nil
	}
	file := &File{LicenseKey: payload["licenseKey"].(string), ProductID: product, MachineID: machine, KeyID: payload["kid"].(string)}
	var isIssued, isRefreshed, isExpiry bool
	file.IssuedAt, isIssued = parseTime(payload["issuedAt"])
	file.RefreshAfter, isRefreshed = parseTime(payload["refreshAfter"])
	if expires != nil {
		var at time.Time
		at, isExpiry = parseTime(expires)
		file.ExpiresAt = &at
	}
	if at, ok := parseTime(policy["graceEndsAt"]); ok {
		file.GraceEndsAt = &at
	}
	file.Entitlements, _ = readEntitlements(payload["entitlements"])
	if !isIssued || !isRefreshed || isExpiry != (expires != nil) {
		return nil
	}
	return file
}

// endsAt returns the end of the grace period, or the expiry of a license without one.
func (f *File) endsAt() *time.Time {
	if f.GraceEndsAt != nil {
		return f.GraceEndsAt
	}
	return f.ExpiresAt
}

func isMachineLimit(value any) bool {
	number, ok := value.(float64)
	return ok && number >= 1 && number == math.Trunc(number)
}

// readEntitlements converts the parsed JSON of entitlements: true, integers as int64, and texts. It leaves out
// entitlements that are false. It returns false and no entitlements for any other value.
func readEntitlements(value any) (map[string]any, bool) {
	given, ok := value.(map[string]any)
	read := map[string]any{}
	for name, each := range given {
		switch each := each.(type) {
		case string:
			read[name] = each
		case bool:
			if each {
				read[name] = true
			}
		case float64:
			read[name], ok = int64(each), ok && each == math.Trunc(each) && math.Abs(each) <= maxInteger
		default:
			ok = false
		}
	}
	if !ok {
		return map[string]any{}, false
	}
	return read, true
}

// parseTime parses times such as 2030-01-01T00:00:00.000Z.
func parseTime(value any) (time.Time, bool) {
	text, _ := value.(string)
	at, err := time.Parse(timeFormat, text)
	return at, err == nil && at.Format(timeFormat) == text
}

// parseObject parses a JSON object. It returns nil for any other text and for bytes that are not UTF-8.
func parseObject(data []byte) map[string]any {
	var object map[string]any
	if !utf8.Valid(data) || json.Unmarshal(data, &object) != nil {
		return nil
	}
	return object
}
