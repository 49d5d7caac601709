// Receives webhooks: verifies the signature, and prints each event once (docs/webhooks.md).
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type Event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Resource struct {
			ID string `json:"id"`
		} `json:"resource"`
	} `json:"data"`
}

func Verify(secret string, header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(append([]byte(id+"."+timestamp+"."), body...))
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, one := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal(expected, []byte(one)) {
			return true
		}
	}
	return false
}

func main() {
	var seen sync.Map
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 100_000))
		var event Event
		if err != nil || !Verify(os.Getenv("WEBHOOK_SECRET"), request.Header, body) || json.Unmarshal(body, &event) != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, repeated := seen.LoadOrStore(event.ID, true); !repeated {
			fmt.Println(event.Type, event.Data.Resource.ID)
		}
		response.WriteHeader(http.StatusNoContent)
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
