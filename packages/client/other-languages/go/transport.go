package keyward

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxAttempts    = 3
	maxBodyBytes   = 64 * 1024
	filePath       = "/api/v1/licenses/file"
	deactivatePath = "/api/v1/deactivate"
	machinesPath   = "/api/v1/machines"
)

var (
	codeForm   = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`)
	rejections = " NOT_FOUND BLACKLISTED REVOKED SUSPENDED EXPIRED FINGERPRINT_REQUIRED TOO_MANY_MACHINES MACHINE_NOT_ACTIVE NOT_STARTED NOT_ENABLED "
	reasons    = map[int]string{400: "INVALID_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "WRONG_ADDRESS", 405: "WRONG_ADDRESS",
		413: "INVALID_REQUEST", 415: "INVALID_REQUEST", 422: "INVALID_REQUEST", 429: "RATE_LIMITED"}
)

// response is a result and the time of the response: the signed time, or that of Date. The time is zero without both.
type response struct {
	Result
	date       time.Time
	isSigned   bool
	retryAfter time.Duration
}

// call returns the result of read, UNREACHABLE or CONFIGURATION. It retries outages until the deadline. Each attempt asks for a signature
// under the next public key, because the service does not sign under a withdrawn one.
func (c *Client) call(ctx context.Context, path string, body map[string]any, deadline time.Time, read func(int, []byte) *Result) response {
	for attempt := 1; ; attempt++ {
		budget := time.Until(deadline)
		if attempt < maxAttempts {
			budget /= 2
		}
		keyID := ""
		if c.options.RequireSignature && path != filePath && path != machinesPath {
			keyID = c.keyIDs[(attempt-1)%len(c.keyIDs)]
		}
		result := c.request(ctx, path, body, budget, keyID, read)
		// A random part prevents apps from retrying in unison after an outage.
		pause := result.retryAfter + time.Duration(time.Now().UnixNano()%(int64(attempt)*int64(200*time.Millisecond)))
		if result.Code != "UNREACHABLE" || attempt == maxAttempts || time.Until(deadline)-pause < c.options.Timeout/8 {
			return result
		}
		select {
		case <-ctx.Done():
			return result
		case <-time.After(pause):
		}
	}
}

func (c *Client) request(ctx context.Context, path string, body map[string]any, budget time.Duration, keyID string, read func(int, []byte) *Result) response {
	outage := func(detail string) response {
		return response{Result: Result{Source: "offline", Code: "UNREACHABLE", Message: unreachableMessage, Detail: detail}}
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	if keyID != "" {
		body = signedBody(body, keyID)
	}
	content, _ := json.Marshal(body)
	request, err := http.NewRequestWithContext(ctx, "POST", c.options.BaseURL+path, bytes.NewReader(content))
	if err != nil {
		return outage(err.Error())
	}
	request.Header.Set("Authorization", "Bearer "+c.options.APIKey)
	request.Header.Set("Content-Type", "application/json")
	received, err := c.http.Do(request)
	if err != nil {
		return outage(err.Error())
	}
	defer received.Body.Close()
	text, err := io.ReadAll(io.LimitReader(received.Body, maxBodyBytes+1))
	if err != nil || len(text) > maxBodyBytes {
		return outage("The response is truncated or too long.")
	}
	status := received.StatusCode
	date, _ := http.ParseTime(received.Header.Get("Date"))
	if keyID != "" && status != 408 && status < 500 {
		header, isSigned := received.Header.Get("Keyward-Signature"), len(received.Header.Values("Keyward-Signature")) > 0
		answer := Answer{header, isSigned, path, status, c.options.APIKey, content, text}
		outcome, at := VerifyAnswer(answer, keyID, c.keys[keyID], c.latestSigned())
		if outcome != "GOOD" {
			return outage(fmt.Sprintf("The response with status %d is not signed for this request: %s.", status, outcome))
		}
		date = at
	}
	statuses := statusesOf(path)
	if strings.Contains(statuses, strconv.Itoa(status)) {
		if result := read(status, text); result != nil {
			return response{Result: *result, date: date, isSigned: keyID != ""}
		}
	}
	if status < 400 || status == 408 || status >= 500 || strings.Contains(statuses, strconv.Itoa(status)) {
		result := outage(fmt.Sprintf("The service is unavailable or is not Keyward: status %d.", status))
		seconds, _ := strconv.ParseUint(received.Header.Get("Retry-After"), 10, 31)
		result.retryAfter = time.Duration(seconds) * time.Second
		return result
	}
	reason, ok := reasons[status]
	if !ok {
		reason = "UNEXPECTED_STATUS"
	}
	message := message(parseObject(text), fmt.Sprintf("The service responded with status %d.", status))
	return response{Result: Result{Source: "online", Code: "CONFIGURATION", Reason: reason, Message: message}}
}

// statusesOf returns the statuses that an endpoint defines. Any other status is an error.
func statusesOf(path string) string {
	switch path {
	case filePath:
		return "200 409"
	case deactivatePath:
		return "200 403"
	case machinesPath:
		return "200 403 409"
	}
	return "200 400"
}

// signedBody returns the body of a request for a signed response.
func signedBody(body map[string]any, keyID string) map[string]any {
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		panic(err) // the system has no random numbers
	}
	signed := map[string]any{"nonce": base64.RawURLEncoding.EncodeToString(nonce), "kid": keyID}
	for name, value := range body {
		signed[name] = value
	}
	return signed
}

func (c *Client) latestSigned() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.UnixMilli(int64(c.latestSignedMs(readState(c.options.Storage))))
}

// readVerdict parses the fields that the verdicts of v1 and v2 have in common.
func (c *Client) readVerdict(status int, text []byte) *Result {
	body := parseObject(text)
	valid, isVerdict := body["valid"].(bool)
	if !isVerdict || valid != (body["code"] == "VALID") {
		return nil
	}
	if !valid {
		return readRejection(body)
	}
	result := &Result{Source: "online", Valid: true, Code: "VALID"}
	if expires, ok := body["expiresAt"]; !ok || status != 200 {
		return nil
	} else if expires != nil {
		at, ok := parseTime(expires)
		if !ok {
			return nil
		}
		result.ExpiresAt = &at
	}
	if at, ok := parseTime(body["graceEndsAt"]); ok {
		result.GraceEndsAt = &at
	}
	if c.options.Entitlements {
		read, ok := readEntitlements(body["entitlements"])
		if _, isSent := body["entitlements"]; isSent && !ok {
			return nil
		}
		result.Entitlements = read
	}
	return result
}

// readRejection parses the code, the message and the used slots of a rejection.
func readRejection(body map[string]any) *Result {
	code, _ := body["code"].(string)
	if !codeForm.MatchString(code) {
		return nil
	}
	if !strings.Contains(rejections, " "+code+" ") {
		code = "REJECTED" // a code of a later version
	}
	result := &Result{Source: "online", Code: code, Message: message(body, "The check was rejected.")}
	machines, _ := body["machines"].(map[string]any)
	used, hasUsed := machines["used"].(float64)
	if max, hasMax := machines["max"].(float64); hasUsed && hasMax {
		result.Machines = &Machines{int(used), int(max)}
	}
	return result
}

func readDeactivation(status int, text []byte) *Result {
	body := parseObject(text)
	if status != 200 && body["code"] == "NOT_ENABLED" {
		return readRejection(body)
	}
	deactivated, ok := body["deactivated"].(bool)
	if status != 200 || !ok {
		return nil
	}
	if deactivated {
		return &Result{Source: "online", Code: "DEACTIVATED"}
	}
	return &Result{Source: "online", Code: "NOT_ACTIVE"}
}

// readMachines parses the machines of a license, or the reason why the service lists none.
func readMachines(status int, text []byte) *Result {
	body := parseObject(text)
	if status != 200 {
		return readRejection(body)
	}
	used, hasUsed := body["used"].(float64)
	limit, hasLimit := body["max"].(float64)
	left, hasLeft := body["releasesLeft"].(float64)
	listed, hasList := body["machines"].([]any)
	if !hasUsed || !hasList || (!hasLimit && body["max"] != nil) || (!hasLeft && body["releasesLeft"] != nil) {
		return nil
	}
	result := &Result{Source: "online", Code: "LISTED", Machines: &Machines{int(used), int(limit)}}
	if hasLeft {
		count := int(left)
		result.ReleasesLeft = &count
	}
	for _, value := range listed {
		fields, _ := value.(map[string]any)
		ref, hasRef := fields["ref"].(string)
		hostname, hasName := fields["hostname"].(string)
		seen, hasSeen := parseTime(fields["lastSeenAt"])
		current, hasCurrent := fields["current"].(bool)
		if !hasRef || !hasSeen || !hasCurrent || (!hasName && fields["hostname"] != nil) {
			return nil
		}
		result.List = append(result.List, Machine{ref, hostname, seen, current})
	}
	return result
}

// message returns the message of a response: "message" on v2, "detail" elsewhere. Without a text, it returns otherwise.
func message(body map[string]any, otherwise string) string {
	for _, name := range []string{"message", "detail"} {
		if text, _ := body[name].(string); text != "" {
			return text
		}
	}
	return otherwise
}
