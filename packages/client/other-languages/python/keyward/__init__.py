"""Checks the license of an app: the service decides when it is reachable, and a signed file during an outage.

Requires Python 3.9 or newer and the package `cryptography`. The rules are in docs/api.md, C1 to C6. Only the constructor
raises. Calls return expected outcomes as results.
"""

import asyncio
import base64
import email.utils
import http.client
import json
import os
import random
import re
import secrets
import socket
import threading
import time
import urllib.request
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Union
from urllib.parse import SplitResult, unquote, urlsplit

from .files import replace_file
from .license_file import (FileUser, ends_at, is_time, judge, parse_object, read_entitlements, read_public_key, request_code,
                           to_ms, verify, verify_answer)  # fmt: skip

DAY_MS = 24 * 60 * 60 * 1000
FILE_PATH, MACHINES_PATH = "/api/v1/licenses/file", "/api/v1/machines"
MAX_ATTEMPTS = 3
MAX_BODY_BYTES = 64 * 1024
MAX_LICENSES = 10
REFRESH_PAUSE_SECONDS = 60
REJECTIONS = {"NOT_FOUND", "BLACKLISTED", "REVOKED", "SUSPENDED", "EXPIRED", "FINGERPRINT_REQUIRED", "TOO_MANY_MACHINES",
              "MACHINE_NOT_ACTIVE", "NOT_STARTED", "NOT_ENABLED"}  # fmt: skip; checks are not rejected with the last three
REASONS = {400: "INVALID_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "WRONG_ADDRESS", 405: "WRONG_ADDRESS", 413: "INVALID_REQUEST",
           415: "INVALID_REQUEST", 422: "INVALID_REQUEST", 429: "RATE_LIMITED"}  # fmt: skip
OFFLINE_MESSAGES = {
    "NO_FILE": "The license could not be checked. Connect to the internet and try again.",
    "BAD_SIGNATURE": "The stored license file is damaged. Connect to the internet and try again.",
    "UNKNOWN_KEY": "This version of the app cannot read the stored license file. Connect to the internet and try again.",
    "WRONG_LICENSE": "The stored license file belongs to another license key. Connect to the internet and try again.",
    "WRONG_PRODUCT": "The stored license file belongs to another product. Connect to the internet and try again.",
    "WRONG_MACHINE": "The stored license file belongs to another machine. Connect to the internet and try again.",
    "FILE_EXPIRED": "The license has expired. Renew the license, connect to the internet and try again.",
    "REFRESH_NEEDED": "The license must be checked online again. Connect to the internet and try again.",
    "CLOCK_SET_BACK": "The clock of this machine is wrong. Set the correct date and time and try again.",
}
MESSAGE_AFTER_REJECTION = (
    "The last online check rejected the license, or it was deactivated on this machine. Connect to the internet and try again."
)
UNREACHABLE_MESSAGE = "The license service cannot be reached. Connect to the internet and try again."


@dataclass(frozen=True)
class Machine:
    """A machine that holds a slot of the license."""

    ref: str  # the name of the machine for `release`
    hostname: Optional[str]  # the host name that the machine sent with `activate`
    last_seen_at: str  # the approximate time of its last check, as ISO 8601 in UTC
    current: bool  # whether this is the machine of the client


@dataclass(frozen=True)
class Result:
    """The outcome of a call. `source` is "online" if the service decided, "offline" if it was not reachable."""

    source: str
    code: str  # VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls
    expires_at: Optional[str] = None  # ISO 8601 in UTC; None if the license never expires or the check is rejected
    reason: Optional[str] = None  # the reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED
    rejected_as: Optional[str] = None  # the code of the online rejection that ended the use of the file
    message: Optional[str] = None  # a sentence for the user of the app, if the license is not valid; the text may change
    detail: Optional[str] = None  # a description of an outage for the developer
    refresh_after: Optional[str] = None  # the time from which the file is no longer good, as ISO 8601 in UTC
    grace_ends_at: Optional[str] = None  # the end of the grace period, if the license has expired and is in it
    entitlements: Optional[Mapping[str, Union[bool, int, str]]] = None  # if the license is valid and the option is set
    machines: Optional[tuple] = None  # the used slots and their limit (None: no limit), with TOO_MANY_MACHINES of `activate` and LISTED
    releases_left: Optional[int] = None  # with LISTED: the number of slots that apps may release now; None without a limit
    list: tuple[Machine, ...] = ()  # with LISTED: at most 100 machines that hold slots

    @property
    def valid(self) -> bool:
        return self.code == "VALID"


class _Outage(Exception):
    """The service could not be reached. `retry_after` is the requested pause before a retry in seconds."""

    def __init__(self, message: str, retry_after: float = 0):
        super().__init__(message)
        self.retry_after = retry_after
        self.result = Result("offline", "UNREACHABLE", message=UNREACHABLE_MESSAGE, detail=message)


class _Misconfiguration(Exception):
    """The service responded with a 4xx other than a verdict or 408, because the app is configured wrongly."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.result = Result("online", "CONFIGURATION", reason=REASONS.get(status, "UNEXPECTED_STATUS"), message=message)


# Set by AsyncLicenseClient when the task of the current call is cancelled.
_cancelled: ContextVar[Optional[threading.Event]] = ContextVar("keyward_cancelled", default=None)


class LicenseClient:
    """A client for one license key. Several threads may use it.

    `public_keys` maps key ids to the public keys of `GET /api/v1/public-keys`, which the app contains. `storage` is the
    path of the file for the client's state. `timeout` is the time budget of a call in seconds. `now` returns the
    device's time in milliseconds since 1970. With `product_id`, files of other products are rejected. With
    `require_signature`, a response that the service has not signed for exactly its request counts as an outage. With
    `entitlements`, the results of valid checks contain the entitlements of the license. Raises ValueError for invalid options.
    """

    def __init__(self, base_url: str, api_key: str, public_keys: dict, license_key: str, storage: str,
                 machine_id: Optional[str] = None, hostname: Optional[str] = None, timeout: float = 5,
                 allow_http: bool = False, product_id: Optional[str] = None, require_signature: bool = False,
                 entitlements: bool = False, now: Callable[[], float] = lambda: time.time() * 1000):  # fmt: skip
        self._url = urlsplit(base_url)
        is_local = re.fullmatch(r"localhost|.+\.localhost|127(\.\d+){3}|::1", self._url.hostname or "")
        if not self._url.hostname or self._url.scheme not in ("https", "http"):
            raise ValueError(f"base_url must be an https URL such as https://licenses.example.com; got {base_url!r}.")
        if self._url.scheme == "http" and not is_local and not allow_http:
            raise ValueError(f"base_url must use https, because responses over http can be forged; got {base_url!r}.")
        if not re.fullmatch(r"[\x21-\x7e]+", api_key):
            raise ValueError("api_key must consist of printable ASCII characters without blanks.")
        if not license_key or not public_keys:
            raise ValueError("license_key and public_keys are required.")
        self._keys = {key_id: read_public_key(key) for key_id, key in public_keys.items()}
        self._license_key = normalize_license_key(license_key)
        self._user = FileUser(self._license_key, product_id and product_id.lower(), machine_id)  # product ids as in license files
        self._require_signature, self._entitlements = require_signature, entitlements
        self._latest_signed_ms = 0.0  # the time of the latest signed response in this process
        self._identity = {"fingerprint": machine_id} if machine_id else {}
        self._hostname = {"hostname": hostname} if hostname else {}
        self._api_key, self._storage, self._timeout, self._now = api_key, storage, timeout, now
        self._lock = threading.Lock()
        self._rejected_as: Optional[str] = None  # the rejection in this process, which may not have been written
        self._next_refresh = 0.0

    def validate(self) -> Result:
        """Checks the license online, or with the stored file during an outage."""
        return self._check("/api/v2/license/validate", {"license": self._license_key}, _verdict_v2)

    def activate(self) -> Result:
        """Checks the license like `validate` and sends the name of this machine."""
        return self._check("/api/v1/activate", {"licenseKey": self._license_key, **self._hostname}, _verdict_v1)

    def deactivate(self) -> Result:
        """Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service."""
        return self._release(self._identity, rejected_as="DEACTIVATED")

    def machines(self) -> Result:
        """Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service.

        Returns LISTED, NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
        """
        body, deadline = {"licenseKey": self._license_key, **self._identity}, time.monotonic() + self._timeout
        try:
            return self._call(MACHINES_PATH, body, [200, 403, 409], _machines, deadline)[0]
        except (_Outage, _Misconfiguration) as error:
            return error.result

    def release(self, ref: str) -> Result:
        """Releases the slot of another machine of the license. `ref` is that of a listed machine.

        Returns the codes of `deactivate`, or NOT_ENABLED like `machines`.
        """
        return self._release({"ref": ref})

    def _release(self, machine: dict, **rejection: str) -> Result:
        body, deadline = {"licenseKey": self._license_key, **machine}, time.monotonic() + self._timeout
        try:
            released, service_ms = self._call("/api/v1/deactivate", body, [200, 403], _deactivated, deadline)
        except (_Outage, _Misconfiguration) as error:
            return error.result
        if isinstance(released, Result):
            return released
        if not released:
            return Result("online", "NOT_ACTIVE")
        self._change(service_ms=service_ms if self._require_signature else None, **rejection)
        return Result("online", "DEACTIVATED")

    def refresh_file(self) -> Result:
        """Fetches and stores a license file now.

        Returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service issues no file. BAD_FILE: the received file is for
        another license, product or machine, or no shipped key has signed it. NOT_STORED: the storage failed. The stored file is kept then.
        """
        return self._fetch_file(time.monotonic() + self._timeout)

    def import_file(self, text: str) -> Result:
        """Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now.

        Returns IMPORTED, or NOT_IMPORTED with the `reason` of an offline refusal or NOT_STORED.
        """
        file, latest = text.strip(), self._read()["latestSeenMs"]
        outcome, payload = judge(file, self._keys, self._user, self._now(), latest)
        if outcome == "GOOD" and not self._change(file=file):
            outcome = "NOT_STORED"
        if outcome != "GOOD":
            return Result("offline", "NOT_IMPORTED", reason=_for_apps(outcome))
        return Result("offline", "IMPORTED", expires_at=payload["policy"]["expiresAt"], refresh_after=payload["refreshAfter"])

    def request_code(self) -> Optional[str]:
        """Returns the code with which a person requests the file of this machine, for a machine without network access.

        The vendor turns the code into a file for `import_file`. Returns None without a `machine_id`.
        """
        request = {"licenseKey": self._license_key, "machineId": self._user.machine_id, **self._hostname}
        return request_code(request) if self._identity else None

    def _check(self, path: str, body: dict, read: Callable) -> Result:
        body = {**body, **self._identity, **({"include": ["entitlements"]} if self._entitlements else {})}
        deadline = time.monotonic() + self._timeout
        try:
            read_all = lambda status, text: read(status, text, self._entitlements)  # noqa: E731
            result, date_ms = self._call(path, body, [200, 400], read_all, deadline)
        except _Outage as outage:
            return self._decide_offline(str(outage))
        except _Misconfiguration as error:
            return error.result
        self._change(rejected_as=None if result.valid else result.code, service_ms=date_ms)
        if result.valid:
            self._refresh_if_due(result.expires_at, deadline)
        return result

    def _decide_offline(self, detail: str) -> Result:
        now = self._now()
        state = self._read()
        stored = self._find(state)
        rejected_as = self._rejected_as or stored.get("rejectedAs")
        file = stored.get("file")
        if file is None or rejected_as is not None:
            outcome, payload = "NO_FILE", None
        else:
            outcome, payload = judge(file, self._keys, self._user, now, state["latestSeenMs"])
        self._change(seen_ms=now)
        if outcome == "GOOD":
            expires_at, refresh_after = payload["policy"]["expiresAt"], payload["refreshAfter"]
            is_in_grace = expires_at is not None and to_ms(expires_at) <= now
            grace_ends_at = ends_at(payload["policy"]) if is_in_grace else None
            return Result("offline", "VALID", expires_at=expires_at, detail=detail, refresh_after=refresh_after,
                          grace_ends_at=grace_ends_at, entitlements=self._unlocked(payload))  # fmt: skip
        reason = _for_apps(outcome)
        message = OFFLINE_MESSAGES[reason] if rejected_as is None else MESSAGE_AFTER_REJECTION
        return Result("offline", "OFFLINE_REFUSED", reason=reason, rejected_as=rejected_as, message=message, detail=detail)

    def _unlocked(self, payload: dict) -> Optional[dict]:
        return (read_entitlements(payload.get("entitlements")) or {}) if self._entitlements else None

    def _refresh_if_due(self, expires_at: Optional[str], deadline: float) -> None:
        """Fetches a new file if one is due, within the rest of the time budget."""
        state, now = self._read(), self._now()
        file = self._find(state).get("file")
        if file is not None and self._rejected_as is None:
            outcome, payload = judge(file, self._keys, self._user, now, state["latestSeenMs"])
            if outcome == "GOOD" and payload["policy"]["expiresAt"] == expires_at:
                issued, until = to_ms(payload["issuedAt"]), to_ms(payload["refreshAfter"])
                if now < issued + min(DAY_MS, (until - issued) / 2):
                    return
        if time.monotonic() < self._next_refresh:
            return
        self._next_refresh = time.monotonic() + REFRESH_PAUSE_SECONDS
        self._fetch_file(deadline)

    def _fetch_file(self, deadline: float) -> Result:
        body = {"licenseKey": self._license_key, **self._identity}
        try:
            file, _ = self._call(FILE_PATH, body, [200, 409], _file_or_refusal, deadline)
        except _Outage as outage:
            return outage.result
        except _Misconfiguration as error:
            return error.result
        if isinstance(file, Result):
            return file
        outcome, payload = verify(file, self._keys, self._user)
        if outcome != "GOOD":
            return Result("online", "BAD_FILE", reason=_for_apps(outcome))
        if not self._change(file=file):
            return Result("online", "NOT_STORED")
        return Result("online", "REFRESHED", expires_at=payload["policy"]["expiresAt"], refresh_after=payload["refreshAfter"])

    def _call(self, path: str, body: dict, statuses: list, read: Callable, deadline: float) -> tuple:
        """Returns the result of `read` and the service's time. Retries outages until the deadline.

        Each attempt asks for a signature under the next public key, because the service does not sign under a withdrawn one.
        """
        key_ids = list(self._keys) if self._require_signature and path not in (FILE_PATH, MACHINES_PATH) else [None]
        for attempt in range(1, MAX_ATTEMPTS + 1):
            left = deadline - time.monotonic()
            key_id = key_ids[(attempt - 1) % len(key_ids)]
            try:
                return self._request(path, body, statuses, read, left if attempt == MAX_ATTEMPTS else left / 2, key_id)
            except _Outage as outage:
                pause = outage.retry_after + random.random() * 0.2 * attempt
                if attempt == MAX_ATTEMPTS or deadline - time.monotonic() - pause < self._timeout / 8:
                    raise
                if (_cancelled.get() or threading.Event()).wait(pause):
                    raise
        raise AssertionError("The last attempt must return or raise.")

    def _request(self, path: str, body: dict, statuses: list, read: Callable, timeout: float, key_id: Optional[str]) -> tuple:
        if key_id is not None:
            body = {**body, "nonce": secrets.token_urlsafe(16), "kid": key_id}
        sent = json.dumps(body).encode()
        connection, target = _connection_to(self._url, max(timeout, 0.001))
        received: list = []
        is_abandoned = threading.Event()

        def exchange() -> None:
            try:
                connection.connect()
                if is_abandoned.is_set():
                    return
                headers = {"authorization": f"Bearer {self._api_key}", "content-type": "application/json"}
                connection.request("POST", target + path, sent, headers)
                response = connection.getresponse()
                received.extend((response, response.read(MAX_BODY_BYTES + 1)))
            except (OSError, http.client.HTTPException, ValueError) as error:
                received[:] = [error]
            finally:
                connection.close()

        # The resolution of a name has no timeout, and the timeout of a socket applies to each address and operation. A daemon
        # thread can be abandoned at the deadline, and it does not delay the end of the process.
        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        cancelled, end = _cancelled.get(), time.monotonic() + max(timeout, 0.001)
        while thread.is_alive() and time.monotonic() < end and not (cancelled and cancelled.is_set()):
            left = max(end - time.monotonic(), 0.001)
            thread.join(left if cancelled is None else min(left, 0.05))
        if thread.is_alive():
            is_abandoned.set()
            _abort(connection.sock)
            raise _Outage(f"No response from {self._url.netloc} in time.")
        if len(received) != 2:
            raise _Outage(f"No connection to {self._url.netloc}: {received[0]!r}")
        response, data = received
        status = response.status
        if len(data) > MAX_BODY_BYTES or response.length:
            raise _Outage("The response is too long or incomplete.")
        signed_ms = None
        if key_id is not None and status not in (408, *range(500, 600)):
            signature, latest = response.getheader("keyward-signature"), max(self._read()["latestSignedMs"], self._latest_signed_ms)
            key = self._keys[key_id]
            outcome, signed_ms = verify_answer(signature, path, status, self._api_key, sent, data, key_id, key, latest)
            if outcome != "GOOD":
                raise _Outage(f"The response with status {status} is not signed for this request: {outcome}.")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = ""
        if status in statuses:
            value = read(status, text)
            if value is None:
                raise _Outage(f"The response with status {status} does not have the format of Keyward.")
            if signed_ms is None:
                return value, _read_date(response.getheader("date"))
            self._latest_signed_ms = max(self._latest_signed_ms, signed_ms)
            return value, signed_ms
        if status < 400 or status == 408 or status >= 500:
            wait = response.getheader("retry-after") or ""
            raise _Outage(f"The service responded with status {status}.", int(wait) if wait.isascii() and wait.isdigit() else 0)
        raise _Misconfiguration(status, _message(parse_object(text) or {}) or f"The service responded with status {status}.")

    def _read(self) -> dict:
        """Returns the stored state. Returns an empty state when the storage fails or contains another text."""
        try:
            with open(self._storage, encoding="utf-8") as file:
                stored = parse_object(file.read()) or {}
        except (OSError, ValueError):
            stored = {}
        seen, signed, licenses = stored.get("latestSeenMs"), stored.get("latestSignedMs"), stored.get("licenses")
        entries = [each for each in licenses if isinstance(each, dict)] if isinstance(licenses, list) else []
        return {
            "version": 2,
            "latestSeenMs": seen if isinstance(seen, (int, float)) else 0,
            "latestSignedMs": signed if isinstance(signed, (int, float)) else 0,
            "licenses": [each for each in entries if isinstance(each.get("licenseKey"), str) and isinstance(each.get("file"), str)],
        }

    def _find(self, state: dict) -> dict:
        return next((each for each in state["licenses"] if each["licenseKey"] == self._license_key), {})

    def _change(self, file: Optional[str] = None, seen_ms: Optional[float] = None, service_ms: Optional[float] = None,
                **rejection: Optional[str]) -> bool:  # fmt: skip
        """Stores a new file, a time, or a rejection (`rejected_as`; None allows the use of the file again).

        Returns whether the change was written. A rejection that was not written stays in force in this process.
        """
        with self._lock:
            if "rejected_as" in rejection:
                self._rejected_as = rejection["rejected_as"]
            state = self._read()
            own = self._find(state)
            if file is not None:
                others = [each for each in state["licenses"] if each is not own]
                own = {"licenseKey": self._license_key, "file": file}
                state["licenses"] = [own, *others][:MAX_LICENSES]
            elif rejection:
                own["rejectedAs"] = self._rejected_as
            # The service's clock replaces the latest time. The device's clock only moves it forward.
            latest = state["latestSeenMs"] if service_ms is None else service_ms
            state["latestSeenMs"] = max(latest, seen_ms or 0)
            state["latestSignedMs"] = max(state["latestSignedMs"], self._latest_signed_ms)
            try:
                replace_file(self._storage, json.dumps(state).encode())
            except OSError:
                return False
            if file is not None:
                self._rejected_as = None
            return True


class AsyncLicenseClient:
    """`LicenseClient` for asyncio. A call whose task is cancelled ends at once, and the stored file stays as it is."""

    def __init__(self, *arguments, **options):
        self._client = LicenseClient(*arguments, **options)

    async def validate(self) -> Result:
        return await self._run(self._client.validate)

    async def activate(self) -> Result:
        return await self._run(self._client.activate)

    async def deactivate(self) -> Result:
        return await self._run(self._client.deactivate)

    async def machines(self) -> Result:
        return await self._run(self._client.machines)

    async def release(self, ref: str) -> Result:
        return await self._run(self._client.release, ref)

    async def refresh_file(self) -> Result:
        return await self._run(self._client.refresh_file)

    async def import_file(self, text: str) -> Result:
        return await self._run(self._client.import_file, text)

    def request_code(self) -> Optional[str]:
        return self._client.request_code()

    async def _run(self, call: Callable[..., Result], *arguments: str) -> Result:
        cancelled = threading.Event()
        token = _cancelled.set(cancelled)
        try:
            return await asyncio.to_thread(call, *arguments)
        finally:
            cancelled.set()
            _cancelled.reset(token)


def _connection_to(url: SplitResult, timeout: float) -> tuple:
    """Returns a connection to the service or to the proxy that the environment names, and the target of requests before the path."""
    path, proxies = url.path.rstrip("/"), urllib.request.getproxies_environment()
    given = None if urllib.request.proxy_bypass_environment(url.netloc) else proxies.get(url.scheme, proxies.get("all"))
    is_https = url.scheme == "https"
    connect = http.client.HTTPSConnection if is_https else http.client.HTTPConnection
    proxy = urlsplit(given if given is None or "://" in given else f"http://{given}")
    if not proxy.hostname:
        return connect(url.hostname, url.port, timeout=timeout), path
    connection = connect(proxy.hostname, proxy.port or 80, timeout=timeout)
    if not is_https:
        return connection, url.geturl().rstrip("/")
    credentials = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode()
    basic = {"proxy-authorization": "Basic " + base64.b64encode(credentials).decode()} if proxy.username else {}
    connection.set_tunnel(url.hostname, url.port or 443, basic)
    return connection, path


def normalize_license_key(text: str) -> str:
    """Returns a generated key in upper case with hyphens. Returns any other text unchanged."""
    key = re.sub(r"[\s\u2010-\u2015\u2212-]+", "-", text.strip()).upper()
    return key if re.fullmatch(r"[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}", key) else text


def _for_apps(outcome: str) -> str:
    return "BAD_SIGNATURE" if outcome == "MALFORMED" else outcome


def _verdict_v2(status: int, text: str, entitlements: bool) -> Optional[Result]:
    result = _verdict_v1(status, text, entitlements)
    agrees = result is not None and result.valid == (status == 200) and (parse_object(text) or {}).get("status", status) == status
    return result if agrees else None


def _verdict_v1(status: int, text: str, entitlements: bool) -> Optional[Result]:
    body = parse_object(text) or {}
    valid, code, expires_at = body.get("valid"), body.get("code"), body.get("expiresAt")
    if valid is True and status == 200 and code == "VALID" and "expiresAt" in body:
        grace_ends_at = body["graceEndsAt"] if is_time(body.get("graceEndsAt")) else None
        unlocked = read_entitlements(body.get("entitlements", {})) if entitlements else None
        is_good = (expires_at is None or is_time(expires_at)) and (unlocked is not None or not entitlements)
        return Result("online", code, expires_at=expires_at, grace_ends_at=grace_ends_at, entitlements=unlocked) if is_good else None
    return _rejection(body) if valid is False and code != "VALID" else None


def _rejection(body: dict) -> Optional[Result]:
    code, machines = body.get("code"), body.get("machines")
    if not isinstance(code, str) or not re.fullmatch("[A-Z][A-Z0-9_]{1,63}", code):
        return None
    counts = (machines.get("used"), machines.get("max")) if isinstance(machines, dict) else ()
    return Result("online", code if code in REJECTIONS else "REJECTED", message=_message(body) or "The check was rejected.",
                  machines=counts if counts and all(type(count) is int for count in counts) else None)  # fmt: skip


def _file_or_refusal(status: int, text: str) -> Union[str, Result, None]:
    if status == 200:
        return text
    return _rejection(parse_object(text) or {})


def _deactivated(status: int, text: str) -> Union[bool, Result, None]:
    body = parse_object(text) or {}
    if status != 200:
        return _rejection(body) if body.get("code") == "NOT_ENABLED" else None
    value = body.get("deactivated")
    return value if isinstance(value, bool) else None


def _machines(status: int, text: str) -> Optional[Result]:
    body = parse_object(text) or {}
    if status != 200:
        return _rejection(body)
    used, limit, left, listed = (body.get(name) for name in ("used", "max", "releasesLeft", "machines"))
    counts_good = type(used) is int and all(count is None or type(count) is int for count in (limit, left))
    machines = [_machine(each) for each in listed] if isinstance(listed, list) else [None]
    if not counts_good or None in machines:
        return None
    return Result("online", "LISTED", machines=(used, limit), releases_left=left, list=tuple(machines))


def _machine(value: object) -> Optional[Machine]:
    if not isinstance(value, dict):
        return None
    ref, hostname, seen, current = (value.get(name) for name in ("ref", "hostname", "lastSeenAt", "current"))
    is_good = isinstance(ref, str) and isinstance(hostname, (str, type(None))) and isinstance(seen, str) and isinstance(current, bool)
    return Machine(ref, hostname, seen, current) if is_good else None


def _message(body: dict) -> Optional[str]:
    """Returns the message of a response: `message` on v2, `detail` elsewhere."""
    return next((body[name] for name in ("message", "detail") if isinstance(body.get(name), str) and body[name]), None)


def _abort(sock: Optional[socket.socket]) -> None:
    try:
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _read_date(header: Optional[str]) -> Optional[float]:
    try:
        return email.utils.parsedate_to_datetime(header or "").timestamp() * 1000
    except (TypeError, ValueError):
        return None
