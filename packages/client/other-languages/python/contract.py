"""Runs the Python client as a program for the contract suite (packages/client/contract-suite/README.md)."""

import asyncio
import json
import sys
import time

import keyward
from keyward import license_file
from keyward.machine_key import machine_key


def open_client(command):
    ahead = command["clockAheadMs"]
    return keyward.AsyncLicenseClient(
        base_url=command["baseUrl"],
        api_key=command["apiKey"],
        public_keys={key["keyId"]: key["publicKey"] for key in command["publicKeys"]},
        license_key=command["licenseKey"],
        storage=command["storage"],
        machine_id=command["machineId"],
        hostname=command["hostname"],
        product_id=command["productId"],
        require_signature=command["requireSignature"],
        entitlements=command["entitlements"],
        timeout=command["timeoutMs"] / 1000,
        now=lambda: time.time() * 1000 + ahead,
    )


def judge(command):
    keys = {key["keyId"]: license_file.read_public_key(key["publicKey"]) for key in command["publicKeys"]}
    now, latest = command["nowMs"], command["latestSeenMs"]
    user = license_file.FileUser(command["licenseKey"], command["productId"], command["machineId"])
    return license_file.judge(command["file"], keys, user, now, latest)[0]


def verify(command):
    [(key_id, key)] = [(key["keyId"], license_file.read_public_key(key["publicKey"])) for key in command["publicKeys"]]
    request, response = command["request"].encode(), command["response"].encode()
    signature, path, status, api_key = (command[name] for name in ("signature", "path", "status", "apiKey"))
    latest = command["latestSignedMs"]
    return license_file.verify_answer(signature, path, status, api_key, request, response, key_id, key, latest)[0]


def reply(result):
    return {
        "source": result.source,
        "valid": result.valid,
        "deactivated": result.code == "DEACTIVATED",
        "imported": result.code == "IMPORTED",
        "code": result.code,
        "expiresAt": result.expires_at,
        "refreshAfter": result.refresh_after,
        "graceEndsAt": result.grace_ends_at,
        "reason": result.reason,
        "rejectedAs": result.rejected_as,
        "message": result.message,
        "entitlements": result.entitlements,
        "releasesLeft": result.releases_left,
        "list": [
            {"ref": each.ref, "hostname": each.hostname, "lastSeenAt": each.last_seen_at, "current": each.current}
            for each in result.list
        ],
        "machines": result.machines and dict(zip(("used", "max"), result.machines)),
    }


async def validate_and_cancel(client, seconds):
    try:
        return reply(await asyncio.wait_for(client.validate(), seconds))
    except asyncio.TimeoutError:
        return {"cancelled": True}


client = None
for line in sys.stdin:
    command = json.loads(line)
    if command["command"] == "open":
        try:
            client, result = open_client(command), {}
        except ValueError as error:
            result = {"error": str(error)}
    elif command["command"] == "judge":
        result = {"outcome": judge(command)}
    elif command["command"] == "verify":
        result = {"outcome": verify(command)}
    elif command["command"] == "machineKey":
        try:
            key = machine_key(command["path"])
            result = {"machineId": key.machine_id, "isNew": key.is_new, "isEphemeral": key.is_ephemeral}
        except (OSError, ValueError) as error:
            result = {"error": str(error)}
    elif command["command"] == "validateAndCancel":
        result = asyncio.run(validate_and_cancel(client, command["afterMs"] / 1000))
    elif command["command"] == "requestCode":
        result = {"code": client.request_code()}
    elif command["command"] == "release":
        result = reply(asyncio.run(client.release(command["ref"])))
    elif command["command"] == "refreshFile":
        result = reply(asyncio.run(client.refresh_file()))
    elif command["command"] == "importFile":
        result = reply(asyncio.run(client.import_file(command["file"])))
    else:
        result = reply(asyncio.run(getattr(client, command["command"])()))
    print(json.dumps(result), flush=True)
