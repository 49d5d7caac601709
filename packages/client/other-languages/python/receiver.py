"""Receives webhooks: verifies the signature, and prints each event once (docs/webhooks.md)."""

import base64, hashlib, hmac, json, os, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["WEBHOOK_SECRET"]
seen = set()
lock = threading.Lock()

def verify(secret: str, headers, body: bytes) -> bool:
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    signatures = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(expected, one) for one in signatures)

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        accepted = verify(SECRET, self.headers, body)
        if accepted:
            event = json.loads(body)
            with lock:
                if event["id"] not in seen:
                    print(event["type"], event["data"].get("resource", {}).get("id", ""), flush=True)
                seen.add(event["id"])
        self.send_response(204 if accepted else 400)
        self.end_headers()

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Receiver).serve_forever()
