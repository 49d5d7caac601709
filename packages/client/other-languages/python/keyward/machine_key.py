"""A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file."""

import hashlib
import os
import re
from dataclasses import dataclass
from typing import Optional

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (Encoding, NoEncryption, PrivateFormat, PublicFormat,
                                                          load_pem_private_key)  # fmt: skip

from .files import write_draft
from .license_file import encode


@dataclass(frozen=True)
class MachineKey:
    machine_id: str  # for the option `machine_id`: `mk1_` and the SHA-256 of the public key in base64url
    is_new: bool  # whether this call has created the key
    # Whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a
    # container or in memory. Always False on systems other than Linux.
    is_ephemeral: bool


def machine_key(path: str) -> MachineKey:
    """Returns the key of this machine from a file, and creates it if the file is missing.

    Only the owner can read the file. Processes that start at the same time get the same key. Raises OSError when the file cannot be
    created, and ValueError when it does not contain an Ed25519 key.
    """
    folder = os.path.dirname(os.path.abspath(path))
    known = _read(path)
    is_new = known is None and _create(path)
    key = known or _read(path)
    if key is None:
        raise FileNotFoundError(f"The machine key {path} was deleted while it was read.")
    digest = hashlib.sha256(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).digest()
    machine_id = "mk1_" + encode(digest)
    return MachineKey(machine_id, is_new, _is_ephemeral(os.path.realpath(folder)))


def _read(path: str) -> Optional[Ed25519PrivateKey]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    try:
        key = load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PrivateKey):
        return key
    raise ValueError(f"The file {path} does not contain a machine key. Delete it to create a new one, which needs another slot.")


def _create(path: str) -> bool:
    """Creates the file, complete and flushed to the disk. Returns False if another process has created it meanwhile."""
    draft = write_draft(path, Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        os.link(draft, path)  # unlike a rename, never replaces the key of another process
        return True
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)


def _is_ephemeral(folder: str) -> bool:
    deepest = kind = ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line.split(" - ") for line in file]
    except OSError:
        return False
    for before, after in mounts:
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        # Of two mounts at the same place, the later one is visible.
        if len(point) >= len(deepest) and (folder + "/").startswith(point.rstrip("/") + "/"):
            deepest, kind = point, after.split(" ")[0]
    return kind in ("overlay", "aufs", "tmpfs", "ramfs")
