"""Verifies license files and signed responses (docs/api.md, F1 to F9 and G1 to G5). Uses neither a clock nor a network."""

import base64
import hashlib
import json
import re
from datetime import datetime, timezone
from typing import NamedTuple, Optional

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

CLOCK_TOLERANCE_MS = 5 * 60 * 1000
MAX_FILE_LENGTH = 16 * 1024
MAX_SIGNATURE_LENGTH = 4 * 1024
_TIME = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
_DELEGATION = re.compile(rb"keyward-delegation-v1 ([\w-]+) " + _TIME + b" " + _TIME + rb" ([\w-]{43})")
_STATEMENT = re.compile(rb"keyward-answers-v1 " + _TIME + rb" ([\w-]{43})")


class FileUser(NamedTuple):
    """The app that uses a file. Without a product id, it accepts files of all products. Without a machine id, it rejects files for a machine."""

    license_key: str
    product_id: Optional[str] = None
    machine_id: Optional[str] = None


def judge(file: str, keys: dict, user: FileUser, now_ms: float, latest_seen_ms: float) -> tuple:
    """Returns GOOD or the first problem of a file, and its payload. The time is a parameter."""
    outcome, payload = verify(file, keys, user)
    if outcome != "GOOD":
        return outcome, None
    end = ends_at(payload["policy"])
    if now_ms < max(to_ms(payload["issuedAt"]), latest_seen_ms) - CLOCK_TOLERANCE_MS:
        return "CLOCK_SET_BACK", None
    if end is not None and to_ms(end) <= now_ms:
        return "FILE_EXPIRED", None
    return ("REFRESH_NEEDED", None) if to_ms(payload["refreshAfter"]) <= now_ms else ("GOOD", payload)


def ends_at(policy: dict) -> Optional[str]:
    """Returns the end of the grace period, or the expiry of a license without one."""
    return policy["graceEndsAt"] if is_time(policy.get("graceEndsAt")) else policy["expiresAt"]


def verify(file: str, keys: dict, user: FileUser) -> tuple:
    """Verifies the form, the signature, the license, the product and the machine of a file, independent of the time."""
    parts = [_decode(part) for part in file.split(".")] if len(file) <= MAX_FILE_LENGTH else []
    if len(parts) != 2 or parts[0] is None or parts[1] is None or len(parts[1]) != 64:
        return "MALFORMED", None
    try:
        payload = parse_object(parts[0].decode("utf-8"))
    except UnicodeDecodeError:
        payload = None
    if payload is None or not _is_payload(payload):
        return "MALFORMED", None
    if payload["kid"] not in keys:
        return "UNKNOWN_KEY", None
    if not _is_signed(keys[payload["kid"]], parts[0], parts[1]):
        return "BAD_SIGNATURE", None
    if payload["licenseKey"] != user.license_key:
        return "WRONG_LICENSE", None
    if user.product_id is not None and payload.get("productId") != user.product_id:
        return "WRONG_PRODUCT", None
    return ("GOOD", payload) if payload.get("machineId") in (None, user.machine_id) else ("WRONG_MACHINE", None)


def request_code(request: dict) -> str:
    """Returns the code of a request for the file of a machine (docs/api.md, F9)."""
    body = "KWR1." + encode(json.dumps(request, separators=(",", ":")).encode())
    return f"{body}.{encode(hashlib.sha256(body.encode()).digest())[:8]}"


def verify_answer(signature: Optional[str], path: str, status: int, api_key: str, request: bytes, response: bytes,
                  key_id: str, key: Ed25519PublicKey, latest_signed_ms: float) -> tuple:  # fmt: skip
    """Returns GOOD or the first problem of a response, and the signed time. `signature` is the header `keyward-signature`.

    `latest_signed_ms` is the time of the latest signed response, or 0.
    """
    if signature is None:
        return "UNSIGNED", None
    parts = [_decode(part) for part in signature.split(".")] if len(signature) <= MAX_SIGNATURE_LENGTH else []
    if len(parts) != 5 or None in parts:
        return "MALFORMED", None
    delegation, delegated, statement, signed, steps = parts
    delegates = _DELEGATION.fullmatch(delegation)
    if not delegates or delegates[1].decode() != key_id or not _is_signed(key, delegation, delegated):
        return "BAD_DELEGATION", None
    states = _STATEMENT.fullmatch(statement)
    validator = _decode(delegates[4].decode())
    if not states or validator is None or not _is_signed(Ed25519PublicKey.from_public_bytes(validator), statement, signed):
        return "BAD_SIGNATURE", None
    if not delegates[2] <= states[1] < delegates[3]:  # times of this form have the order of their texts
        return "DELEGATION_EXPIRED", None
    hashes = " ".join(encode(hashlib.sha256(each).digest()) for each in (api_key.encode(), request, response))
    node = _climb(hashlib.sha256(f"keyward-answer-v1 {path} {status} {hashes}".encode()).digest(), steps)
    if node is None or encode(node) != states[2].decode():
        return "OTHER_ANSWER", None
    signed_ms = to_ms(states[1].decode())
    return ("BACK_DATED", None) if signed_ms < latest_signed_ms - CLOCK_TOLERANCE_MS else ("GOOD", signed_ms)


def _climb(node: bytes, steps: bytes) -> Optional[bytes]:
    """Returns the root to which the steps of 33 bytes lead from a leaf. Returns None for malformed steps."""
    if len(steps) % 33 != 0:
        return None
    for at in range(0, len(steps), 33):
        side, neighbour = steps[at], steps[at + 1 : at + 33]
        if side > 1:
            return None
        node = hashlib.sha256(b"\x01" + (node + neighbour if side == 0 else neighbour + node)).digest()
    return node


def _is_signed(key: Ed25519PublicKey, data: bytes, signature: bytes) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def read_public_key(text: str) -> Ed25519PublicKey:
    """Reads the standard base64 of an X.509 SubjectPublicKeyInfo. Raises ValueError for any other text."""
    try:
        key = load_der_public_key(base64.b64decode(text, validate=True))
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"public_keys must contain the base64 of an Ed25519 SubjectPublicKeyInfo; got {text!r}.")
    return key


def to_ms(timestamp: str) -> int:
    """Returns the milliseconds since 1970 for text such as 2030-01-01T00:00:00.000Z. Raises ValueError for any other text."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp, re.ASCII):
        raise ValueError(timestamp)
    seconds = datetime.strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc).timestamp()
    return int(seconds) * 1000 + int(timestamp[20:23])


def _is_payload(payload: dict) -> bool:
    policy = payload.get("policy")
    if not isinstance(policy, dict) or not {"maxMachines", "expiresAt"} <= policy.keys():
        return False
    texts = [payload.get(name) for name in ("licenseKey", "licenseId", "customerEmail", "kid")]
    texts += [payload["machineId"]] if "machineId" in payload else []
    limit, expires_at = policy["maxMachines"], policy["expiresAt"]
    return (
        all(isinstance(text, str) and text != "" for text in texts)
        and is_time(payload.get("issuedAt"))
        and is_time(payload.get("refreshAfter"))
        and policy.get("type") in ("PERPETUAL", "SUBSCRIPTION", "TRIAL")
        and (limit is None or (type(limit) is int and limit >= 1))
        and (expires_at is None or is_time(expires_at))
        and (policy["type"] == "PERPETUAL") == (expires_at is None)
    )


def read_entitlements(value: object) -> Optional[dict]:
    """Returns parsed entitlements without those that are False, or None unless each is a bool, an int or a str."""
    if not isinstance(value, dict) or any(type(each) not in (bool, int, str) for each in value.values()):
        return None
    return {name: each for name, each in value.items() if each is not False}


def is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and to_ms(value) is not None
    except ValueError:
        return False


def _decode(text: str) -> Optional[bytes]:
    """Decodes base64url without padding. Returns None unless the text is the canonical encoding."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if encode(data) == text else None


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def parse_object(text: str) -> Optional[dict]:
    """Parses a JSON object. Returns None for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
