// Sends checks with net/http.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	apiKey, license, paths := os.Args[1], os.Args[2], os.Args[4:]
	idle, _ := strconv.Atoi(os.Args[3])
	body, _ := json.Marshal(map[string]string{"license": license})
	large := append(append([]byte{}, body...), bytes.Repeat([]byte(" "), 1_100_000-len(body))...)
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	writer.Write(body)
	writer.Close()

	for _, one := range paths {
		path, url, _ := strings.Cut(one, "=")
		post := func(client *http.Client, data io.Reader, headers ...string) string {
			request, _ := http.NewRequest("POST", url, data)
			request.Header.Set("Authorization", "Bearer "+apiKey)
			request.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(headers); i += 2 {
				request.Header.Set(headers[i], headers[i+1])
			}
			response, err := client.Do(request)
			if err != nil {
				return "error: " + err.Error()
			}
			defer response.Body.Close()
			io.Copy(io.Discard, response.Body)
			return strconv.Itoa(response.StatusCode)
		}
		fresh := func() *http.Client {
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.ExpectContinueTimeout = 5 * time.Second
			return &http.Client{Transport: transport}
		}
		twice := func(seconds int) string {
			client := fresh()
			post(client, bytes.NewReader(body))
			time.Sleep(time.Duration(seconds) * time.Second)
			return post(client, bytes.NewReader(body))
		}
		print := func(name, result string) {
			fmt.Printf("Go net/http\t%s\t%s\t%s\n", path, name, result)
		}
		print("length", post(fresh(), bytes.NewReader(body)))
		print("chunked", post(fresh(), io.MultiReader(bytes.NewReader(body))))
		print("expect", post(fresh(), bytes.NewReader(body), "Expect", "100-continue"))
		print("reuse", twice(0))
		print("gzip", post(fresh(), bytes.NewReader(zipped.Bytes()), "Content-Encoding", "gzip"))
		print("bom", post(fresh(), strings.NewReader("\ufeff"+string(body))))
		print("large", post(fresh(), bytes.NewReader(large)))
		if idle > 0 {
			print("idle", twice(idle))
		}
	}
}
