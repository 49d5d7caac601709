package keyward

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	maxSignatureLength = 4 * 1024
	stepBytes          = 1 + sha256.Size
	timePattern        = `(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)`
)

var (
	delegationForm = regexp.MustCompile(`^keyward-delegation-v1 ([\w-]+) ` + timePattern + ` ` + timePattern + ` ([\w-]{43})$`)
	statementForm  = regexp.MustCompile(`^keyward-answers-v1 ` + timePattern + ` ([\w-]{43})$`)
)

// Answer is a response of the service and its request.
type Answer struct {
	Signature string // the header Keyward-Signature
	IsSigned  bool   // whether the response has this header
	Path      string // the path in the API, such as /api/v2/license/validate
	Status    int
	APIKey    string
	Request   []byte // the body of the request
	Response  []byte // the body of the response
}

// VerifyAnswer returns GOOD with the signed time, or the first problem of a response (docs/api.md, G5). latestSigned is the time of
// the latest signed response, or the zero time.
func VerifyAnswer(answer Answer, keyID string, key ed25519.PublicKey, latestSigned time.Time) (string, time.Time) {
	none := time.Time{}
	if !answer.IsSigned {
		return "UNSIGNED", none
	}
	parts := strings.Split(answer.Signature, ".")
	if len(answer.Signature) > maxSignatureLength || len(parts) != 5 {
		return "MALFORMED", none
	}
	decoded := make([][]byte, len(parts))
	for i, part := range parts {
		if decoded[i] = decode(part); decoded[i] == nil {
			return "MALFORMED", none
		}
	}
	delegates := delegationForm.FindStringSubmatch(string(decoded[0]))
	if delegates == nil || delegates[1] != keyID || !ed25519.Verify(key, decoded[0], decoded[1]) {
		return "BAD_DELEGATION", none
	}
	states := statementForm.FindStringSubmatch(string(decoded[2]))
	validator := decode(delegates[4])
	if states == nil || len(validator) != ed25519.PublicKeySize || !ed25519.Verify(validator, decoded[2], decoded[3]) {
		return "BAD_SIGNATURE", none
	}
	if states[1] < delegates[2] || states[1] >= delegates[3] { // times of this form have the order of their texts
		return "DELEGATION_EXPIRED", none
	}
	root := climb(answer.leaf(), decoded[4])
	if root == nil || base64.RawURLEncoding.EncodeToString(root) != states[2] {
		return "OTHER_ANSWER", none
	}
	at, ok := parseTime(states[1])
	if !ok || at.Before(latestSigned.Add(-clockTolerance)) {
		return "BACK_DATED", none
	}
	return "GOOD", at
}

func (a Answer) leaf() []byte {
	hash := func(data []byte) string {
		sum := sha256.Sum256(data)
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	hashes := hash([]byte(a.APIKey)) + " " + hash(a.Request) + " " + hash(a.Response)
	sum := sha256.Sum256([]byte(fmt.Sprintf("keyward-answer-v1 %s %d %s", a.Path, a.Status, hashes)))
	return sum[:]
}

// climb returns the root to which the steps lead from a leaf. It returns nil for malformed steps.
func climb(node, steps []byte) []byte {
	if len(steps)%stepBytes != 0 {
		return nil
	}
	for ; len(steps) > 0; steps = steps[stepBytes:] {
		left, right := node, steps[1:stepBytes]
		switch steps[0] {
		case 0:
		case 1:
			left, right = right, left
		default:
			return nil
		}
		sum := sha256.Sum256(append(append([]byte{1}, left...), right...))
		node = sum[:]
	}
	return node
}
