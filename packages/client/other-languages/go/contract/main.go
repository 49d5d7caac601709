// Runs the Go client as a program for the contract suite (packages/client/contract-suite/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	keyward "github.com/keyward/keyward/packages/client/other-languages/go"
)

type command struct {
	Command, BaseURL, APIKey, LicenseKey, ProductID, MachineID, Hostname, Storage, File, Ref string
	Path, Request, Response                                                                  string
	Signature                                                                                *string
	RequireSignature, Entitlements                                                           bool
	Status                                                                                   int
	LatestSignedMs, AfterMs                                                                  int64
	PublicKeys                                                                               []struct{ KeyID, PublicKey string }
	TimeoutMs, ClockAheadMs, NowMs, LatestSeenMs                                             int64
}

func main() {
	var client *keyward.Client
	ctx := context.Background()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var sent command
		if err := json.Unmarshal(lines.Bytes(), &sent); err != nil {
			panic(err)
		}
		reply := map[string]any{}
		switch sent.Command {
		case "open":
			opened, err := open(sent)
			client = opened
			if err != nil {
				reply["error"] = err.Error()
			}
		case "judge":
			reply["outcome"] = judge(sent)
		case "verify":
			reply["outcome"] = verify(sent)
		case "validate":
			reply = write(client.Validate(ctx))
		case "validateAndCancel":
			canceled, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Duration(sent.AfterMs)*time.Millisecond, cancel)
			reply = write(client.Validate(canceled))
		case "machineKey":
			key, err := keyward.OpenMachineKey(sent.Path)
			reply = map[string]any{"machineId": key.MachineID, "isNew": key.IsNew, "isEphemeral": key.IsEphemeral}
			if err != nil {
				reply["error"] = err.Error()
			}
		case "activate":
			reply = write(client.Activate(ctx))
		case "deactivate":
			reply = write(client.Deactivate(ctx))
		case "machines":
			reply = write(client.Machines(ctx))
		case "release":
			reply = write(client.Release(ctx, sent.Ref))
		case "refreshFile":
			reply = write(client.RefreshFile(ctx))
		case "requestCode":
			reply["code"] = client.RequestCode()
		case "importFile":
			reply = write(client.ImportFile(sent.File))
		}
		text, _ := json.Marshal(reply)
		fmt.Println(string(text))
	}
}

func open(sent command) (*keyward.Client, error) {
	keys := map[string]string{}
	for _, key := range sent.PublicKeys {
		keys[key.KeyID] = key.PublicKey
	}
	ahead := time.Duration(sent.ClockAheadMs) * time.Millisecond
	return keyward.New(keyward.Options{
		BaseURL:          sent.BaseURL,
		APIKey:           sent.APIKey,
		PublicKeys:       keys,
		LicenseKey:       sent.LicenseKey,
		ProductID:        sent.ProductID,
		Storage:          sent.Storage,
		MachineID:        sent.MachineID,
		Hostname:         sent.Hostname,
		RequireSignature: sent.RequireSignature,
		Entitlements:     sent.Entitlements,
		Timeout:          time.Duration(sent.TimeoutMs) * time.Millisecond,
		Now:              func() time.Time { return time.Now().Add(ahead) },
	})
}

func judge(sent command) string {
	keys := keyward.Keys{}
	for _, key := range sent.PublicKeys {
		keys[key.KeyID], _ = keyward.ReadPublicKey(key.PublicKey)
	}
	now, latestSeen := time.UnixMilli(sent.NowMs), time.UnixMilli(sent.LatestSeenMs)
	user := keyward.FileUser{LicenseKey: sent.LicenseKey, ProductID: sent.ProductID, MachineID: sent.MachineID}
	outcome, _ := keyward.Judge(sent.File, keys, user, now, latestSeen)
	return outcome
}

func verify(sent command) string {
	answer := keyward.Answer{
		Path:     sent.Path,
		Status:   sent.Status,
		APIKey:   sent.APIKey,
		Request:  []byte(sent.Request),
		Response: []byte(sent.Response),
	}
	if sent.Signature != nil {
		answer.Signature, answer.IsSigned = *sent.Signature, true
	}
	key, err := keyward.ReadPublicKey(sent.PublicKeys[0].PublicKey)
	if err != nil {
		panic(err)
	}
	outcome, _ := keyward.VerifyAnswer(answer, sent.PublicKeys[0].KeyID, key, time.UnixMilli(sent.LatestSignedMs))
	return outcome
}

func write(result keyward.Result) map[string]any {
	reply := map[string]any{
		"source":      result.Source,
		"valid":       result.Valid,
		"deactivated": result.Code == "DEACTIVATED",
		"imported":    result.Code == "IMPORTED",
		"code":        result.Code,
		"reason":      result.Reason,
		"rejectedAs":  result.RejectedAs,
		"message":     result.Message,
		"expiresAt":   nil,
		"graceEndsAt": nil,
	}
	if result.Entitlements != nil {
		reply["entitlements"] = result.Entitlements
	}
	if result.ReleasesLeft != nil {
		reply["releasesLeft"] = *result.ReleasesLeft
	}
	list := []map[string]any{}
	for _, each := range result.List {
		machine := map[string]any{"ref": each.Ref, "hostname": nil, "current": each.Current}
		machine["lastSeenAt"] = each.LastSeenAt.Format("2006-01-02T15:04:05.000Z")
		if each.Hostname != "" {
			machine["hostname"] = each.Hostname
		}
		list = append(list, machine)
	}
	reply["list"] = list
	if result.Machines != nil {
		reply["machines"] = map[string]int{"used": result.Machines.Used, "max": result.Machines.Max}
	}
	if result.ExpiresAt != nil {
		reply["expiresAt"] = result.ExpiresAt.Format("2006-01-02T15:04:05.000Z")
	}
	if result.GraceEndsAt != nil {
		reply["graceEndsAt"] = result.GraceEndsAt.Format("2006-01-02T15:04:05.000Z")
	}
	if result.RefreshAfter != nil {
		reply["refreshAfter"] = result.RefreshAfter.Format("2006-01-02T15:04:05.000Z")
	}
	return reply
}
