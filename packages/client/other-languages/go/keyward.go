// Package keyward checks the license of an app: the service decides when it is reachable, and a signed file during an outage.
// It requires only the standard library of Go 1.19 or newer. The rules are in docs/api.md, C1 to C6. Only New returns an
// error. All other calls return expected outcomes as results. When the context of a call ends, the service counts as unreachable.
package keyward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	day                   = 24 * time.Hour
	refreshPause          = time.Minute
	messageAfterRejection = "The last online check rejected the license, or it was deactivated on this machine. Connect to the internet and try again."
	unreachableMessage    = "The license service cannot be reached. Connect to the internet and try again."
)

// offlineMessages contains the message for people for each reason of an offline refusal.
var offlineMessages = map[string]string{
	"NO_FILE":        "The license could not be checked. Connect to the internet and try again.",
	"BAD_SIGNATURE":  "The stored license file is damaged. Connect to the internet and try again.",
	"UNKNOWN_KEY":    "This version of the app cannot read the stored license file. Connect to the internet and try again.",
	"WRONG_LICENSE":  "The stored license file belongs to another license key. Connect to the internet and try again.",
	"WRONG_PRODUCT":  "The stored license file belongs to another product. Connect to the internet and try again.",
	"WRONG_MACHINE":  "The stored license file belongs to another machine. Connect to the internet and try again.",
	"FILE_EXPIRED":   "The license has expired. Renew the license, connect to the internet and try again.",
	"REFRESH_NEEDED": "The license must be checked online again. Connect to the internet and try again.",
	"CLOCK_SET_BACK": "The clock of this machine is wrong. Set the correct date and time and try again.",
}

var (
	apiKeyForm = regexp.MustCompile(`^[\x21-\x7e]+$`)
	localHost  = regexp.MustCompile(`^(localhost|.+\.localhost|127(\.\d+){3}|::1)$`)
	separators = regexp.MustCompile(`[\s\x{2010}-\x{2015}\x{2212}-]+`)
	generated  = regexp.MustCompile(`^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}$`)
)

// Result is the outcome of a call.
type Result struct {
	Source       string     // "online" if the service decided, "offline" if it was not reachable
	Valid        bool       // whether the app may run
	Code         string     // VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls
	ExpiresAt    *time.Time // nil if the license never expires or the check is rejected
	Reason       string     // the reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED
	RejectedAs   string     // the code of the online rejection that ended the use of the file
	Message      string     // a sentence for the user of the app, if the license is not valid; the text may change
	Detail       string     // a description of an outage for the developer
	RefreshAfter *time.Time // the time from which the file is no longer good
	GraceEndsAt  *time.Time // the end of the grace period, if the license has expired and is in it
	// Entitlements contains true, an int64 or a string for each name, if the license is valid and the option is set.
	Entitlements map[string]any
	Machines     *Machines // the used slots, with TOO_MANY_MACHINES of Activate and LISTED
	// ReleasesLeft is, with LISTED, the number of slots that apps may release now. It is nil without a limit.
	ReleasesLeft *int
	List         []Machine // with LISTED: at most 100 machines that hold slots
}

// Machines counts the slots of a license. Max is 0 without a limit.
type Machines struct{ Used, Max int }

// Machine is a machine that holds a slot of the license.
type Machine struct {
	Ref        string    // the name of the machine for Release
	Hostname   string    // the host name that the machine sent with Activate, or ""
	LastSeenAt time.Time // the approximate time of its last check
	Current    bool      // whether this is the machine of the client
}

// Options of a client. The fields without a default are required.
type Options struct {
	BaseURL    string            // the base URL, such as "https://licenses.example.com"
	APIKey     string            // the API key; the app contains it, so it is not a secret
	PublicKeys map[string]string // the keys of GET /api/v1/public-keys by key id
	LicenseKey string            // the license key that the customer entered
	ProductID  string            // the product id of the app; files of other products are rejected
	Storage    string            // the path of the file for the client's state
	MachineID  string            // the machine id; licenses with a machine limit require one
	Hostname   string            // the name of the machine, which Activate sends
	Timeout    time.Duration     // the time budget of a call; default 5 s
	AllowHTTP  bool              // whether http is allowed for other hosts than this machine
	// RequireSignature makes a response that the service has not signed for exactly its request count as an outage.
	RequireSignature bool
	Entitlements     bool             // whether the results of valid checks contain the entitlements of the license
	Now              func() time.Time // the device's clock; default time.Now
}

// Client checks one license key. Several goroutines may use it.
type Client struct {
	options     Options
	keys        Keys
	keyIDs      []string // the ids of the keys, sorted
	http        *http.Client
	mutex       sync.Mutex // guards the storage and the fields below
	rejectedAs  string     // the rejection in this process, which may not have been written
	nextRefresh time.Time
	signedMs    float64 // the time of the latest signed response in this process
}

// New creates a client. It returns an error for invalid options.
func New(options Options) (*Client, error) {
	address, err := url.Parse(options.BaseURL)
	switch {
	case err != nil || address.Hostname() == "" || (address.Scheme != "https" && address.Scheme != "http"):
		return nil, fmt.Errorf("BaseURL must be an https URL such as https://licenses.example.com; got %q", options.BaseURL)
	case address.Scheme == "http" && !options.AllowHTTP && !localHost.MatchString(address.Hostname()):
		return nil, fmt.Errorf("BaseURL must use https, because responses over http can be forged; got %q", options.BaseURL)
	case !apiKeyForm.MatchString(options.APIKey):
		return nil, errors.New("APIKey must consist of printable ASCII characters without blanks")
	case options.LicenseKey == "" || len(options.PublicKeys) == 0:
		return nil, errors.New("LicenseKey and PublicKeys are required")
	}
	keys, keyIDs := Keys{}, []string{}
	for id, text := range options.PublicKeys {
		if keys[id], err = ReadPublicKey(text); err != nil {
			return nil, fmt.Errorf("PublicKeys: %s: %w", id, err)
		}
		keyIDs = append(keyIDs, id)
	}
	sort.Strings(keyIDs)
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Second
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	options.LicenseKey = NormalizeLicenseKey(options.LicenseKey)
	options.ProductID = strings.ToLower(options.ProductID) // as in license files
	options.BaseURL = strings.TrimRight(options.BaseURL, "/")
	// The service never redirects, and following a redirect would send the API key to another host.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{options: options, keys: keys, keyIDs: keyIDs, http: &http.Client{CheckRedirect: noRedirect}}, nil
}

// NormalizeLicenseKey returns a generated key in upper case with hyphens. It returns any other text unchanged.
func NormalizeLicenseKey(text string) string {
	key := strings.ToUpper(separators.ReplaceAllString(strings.TrimSpace(text), "-"))
	if generated.MatchString(key) {
		return key
	}
	return text
}

// Validate checks the license online, or with the stored file during an outage.
func (c *Client) Validate(ctx context.Context) Result {
	return c.check(ctx, "/api/v2/license/validate", c.body("license", ""), func(status int, text []byte) *Result {
		result := c.readVerdict(status, text)
		if inBody, ok := parseObject(text)["status"]; ok && inBody != float64(status) {
			return nil
		}
		if result == nil || result.Valid != (status == 200) {
			return nil
		}
		return result
	})
}

// Activate checks the license like Validate and sends the name of this machine.
func (c *Client) Activate(ctx context.Context) Result {
	return c.check(ctx, "/api/v1/activate", c.body("licenseKey", c.options.Hostname), c.readVerdict)
}

// Deactivate releases the slot of this machine. A released slot ends the use of the stored file. It requires the service.
func (c *Client) Deactivate(ctx context.Context) Result {
	result := c.call(ctx, deactivatePath, c.body("licenseKey", ""), time.Now().Add(c.options.Timeout), readDeactivation)
	if result.Code == "DEACTIVATED" {
		c.change(func(state *state) {
			c.sawSignature(state, result)
			c.reject(state, "DEACTIVATED")
		})
	}
	return result.Result
}

// Machines lists the machines that hold slots of the license, so that a person can choose which one to release. It requires the
// service. It returns LISTED, NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
func (c *Client) Machines(ctx context.Context) Result {
	return c.call(ctx, machinesPath, c.body("licenseKey", ""), time.Now().Add(c.options.Timeout), readMachines).Result
}

// Release releases the slot of another machine of the license. ref is that of a listed machine. It returns the codes of Deactivate, or
// NOT_ENABLED like Machines.
func (c *Client) Release(ctx context.Context, ref string) Result {
	body := map[string]any{"licenseKey": c.options.LicenseKey, "ref": ref}
	result := c.call(ctx, deactivatePath, body, time.Now().Add(c.options.Timeout), readDeactivation)
	if result.Code == "DEACTIVATED" {
		c.change(func(state *state) { c.sawSignature(state, result) })
	}
	return result.Result
}

// RefreshFile fetches and stores a license file now. It returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service
// issues no file. BAD_FILE: the received file is for another license, product or machine, or no shipped key has signed it. NOT_STORED: the
// storage failed. The stored file is kept then.
func (c *Client) RefreshFile(ctx context.Context) Result {
	return c.fetchFile(ctx, time.Now().Add(c.options.Timeout))
}

// ImportFile stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. It
// returns IMPORTED, or NOT_IMPORTED with the reason of an offline refusal or NOT_STORED.
func (c *Client) ImportFile(text string) Result {
	text = strings.TrimSpace(text)
	c.mutex.Lock()
	latestSeen := readState(c.options.Storage).latestSeen()
	c.mutex.Unlock()
	outcome, file := Judge(text, c.keys, c.user(), c.options.Now(), latestSeen)
	if file == nil {
		return Result{Source: "offline", Code: "NOT_IMPORTED", Reason: forApps(outcome)}
	}
	if !c.store(text) {
		return Result{Source: "offline", Code: "NOT_IMPORTED", Reason: "NOT_STORED"}
	}
	return Result{Source: "offline", Code: "IMPORTED", ExpiresAt: file.ExpiresAt, RefreshAfter: &file.RefreshAfter}
}

// RequestCode returns the code with which a person requests the file of this machine, for a machine without network access. The vendor turns
// the code into a file for ImportFile. It returns "" without a MachineID.
func (c *Client) RequestCode() string {
	if c.options.MachineID == "" {
		return ""
	}
	request := map[string]string{"licenseKey": c.options.LicenseKey, "machineId": c.options.MachineID}
	if c.options.Hostname != "" {
		request["hostname"] = c.options.Hostname
	}
	return requestCode(request)
}

func (c *Client) user() FileUser {
	return FileUser{c.options.LicenseKey, c.options.ProductID, c.options.MachineID}
}

func (c *Client) body(keyField, hostname string) map[string]any {
	body := map[string]any{keyField: c.options.LicenseKey}
	if c.options.MachineID != "" {
		body["fingerprint"] = c.options.MachineID
	}
	if hostname != "" {
		body["hostname"] = hostname
	}
	return body
}

func (c *Client) check(ctx context.Context, path string, body map[string]any, read func(int, []byte) *Result) Result {
	deadline := time.Now().Add(c.options.Timeout)
	if c.options.Entitlements {
		body["include"] = []string{"entitlements"}
	}
	result := c.call(ctx, path, body, deadline, read)
	if result.Code == "UNREACHABLE" {
		return c.decideOffline(result.Detail)
	}
	if result.Code == "CONFIGURATION" {
		return result.Result
	}
	c.change(func(state *state) {
		if !result.date.IsZero() { // the service's clock corrects a device whose clock was ahead
			state.LatestSeenMs = float64(result.date.UnixMilli())
		}
		c.sawSignature(state, result)
		if result.Valid {
			c.reject(state, "")
		} else {
			c.reject(state, result.Code)
		}
	})
	if result.Valid {
		c.refreshIfDue(ctx, result.ExpiresAt, deadline)
	}
	return result.Result
}

func (c *Client) decideOffline(detail string) Result {
	result := Result{Source: "offline", Code: "OFFLINE_REFUSED", Reason: "NO_FILE", Detail: detail}
	c.change(func(state *state) {
		now := c.options.Now()
		stored := state.find(c.options.LicenseKey)
		if stored != nil && stored.RejectedAs != nil {
			result.RejectedAs = *stored.RejectedAs
		}
		if c.rejectedAs != "" {
			result.RejectedAs = c.rejectedAs
		}
		if stored != nil && result.RejectedAs == "" {
			outcome, file := Judge(stored.File, c.keys, c.user(), now, state.latestSeen())
			if file != nil {
				result.Valid, result.Code, result.Reason, result.ExpiresAt = true, "VALID", "", file.ExpiresAt
				result.RefreshAfter = &file.RefreshAfter
				if file.ExpiresAt != nil && !now.Before(*file.ExpiresAt) {
					result.GraceEndsAt = file.GraceEndsAt
				}
				if c.options.Entitlements {
					result.Entitlements = file.Entitlements
				}
			} else {
				result.Reason = forApps(outcome)
			}
		}
		if seen := float64(now.UnixMilli()); seen > state.LatestSeenMs {
			state.LatestSeenMs = seen
		}
	})
	if result.Message = offlineMessages[result.Reason]; result.RejectedAs != "" {
		result.Message = messageAfterRejection
	}
	return result
}

// refreshIfDue fetches a new file if one is due, within the rest of the time budget.
func (c *Client) refreshIfDue(ctx context.Context, expiresAt *time.Time, deadline time.Time) {
	c.mutex.Lock()
	isDue := c.isDue(expiresAt) && !time.Now().Before(c.nextRefresh)
	if isDue {
		c.nextRefresh = time.Now().Add(refreshPause)
	}
	c.mutex.Unlock()
	if isDue {
		c.fetchFile(ctx, deadline)
	}
}

func (c *Client) fetchFile(ctx context.Context, deadline time.Time) Result {
	text := ""
	result := c.call(ctx, filePath, c.body("licenseKey", ""), deadline, func(status int, received []byte) *Result {
		if status == 200 {
			text = string(received)
			return &Result{Code: "RECEIVED"}
		}
		return readRejection(parseObject(received))
	})
	if result.Code != "RECEIVED" {
		return result.Result
	}
	outcome, file := Verify(text, c.keys, c.user())
	if file == nil {
		return Result{Source: "online", Code: "BAD_FILE", Reason: forApps(outcome)}
	}
	if !c.store(text) {
		return Result{Source: "online", Code: "NOT_STORED"}
	}
	return Result{Source: "online", Code: "REFRESHED", ExpiresAt: file.ExpiresAt, RefreshAfter: &file.RefreshAfter}
}

// store stores a file and allows its use. It returns false if the write failed.
func (c *Client) store(file string) bool {
	return c.change(func(state *state) {
		c.rejectedAs = ""
		state.add(c.options.LicenseKey, file)
	})
}

// forApps returns the reason of an outcome, because apps handle malformed and wrongly signed files in the same way.
func forApps(outcome string) string {
	if outcome == "MALFORMED" {
		return "BAD_SIGNATURE"
	}
	return outcome
}

// isDue reports whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs.
func (c *Client) isDue(expiresAt *time.Time) bool {
	state, now := readState(c.options.Storage), c.options.Now()
	stored := state.find(c.options.LicenseKey)
	if stored == nil {
		return true
	}
	_, file := Judge(stored.File, c.keys, c.user(), now, state.latestSeen())
	if file == nil || (file.ExpiresAt == nil) != (expiresAt == nil) || (expiresAt != nil && !expiresAt.Equal(*file.ExpiresAt)) {
		return true
	}
	age := file.RefreshAfter.Sub(file.IssuedAt) / 2
	if age > day {
		age = day
	}
	return !now.Before(file.IssuedAt.Add(age))
}

// sawSignature records the time of a signed response, which replaces the latest observed time.
func (c *Client) sawSignature(state *state, result response) {
	if !result.isSigned {
		return
	}
	state.LatestSeenMs = float64(result.date.UnixMilli())
	if state.LatestSignedMs = c.latestSignedMs(state); state.LatestSeenMs > state.LatestSignedMs {
		state.LatestSignedMs = state.LatestSeenMs
	}
	c.signedMs = state.LatestSignedMs
}

func (c *Client) latestSignedMs(state *state) float64 {
	if c.signedMs > state.LatestSignedMs {
		return c.signedMs
	}
	return state.LatestSignedMs
}

// reject records the code that ends the use of the file. An empty code allows it again.
func (c *Client) reject(state *state, code string) {
	c.rejectedAs = code
	if stored := state.find(c.options.LicenseKey); stored != nil {
		if stored.RejectedAs = nil; code != "" {
			stored.RejectedAs = &code
		}
	}
}

// change reads the state, applies the edit and writes the result. It returns false if the write failed.
func (c *Client) change(edit func(*state)) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	state := readState(c.options.Storage)
	edit(state)
	text, err := json.Marshal(state)
	return err == nil && write(c.options.Storage, text) == nil
}
