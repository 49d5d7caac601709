"""Writes small files that only their owner can read. On Windows, the permissions of the folder apply instead."""

import os
import tempfile


def write_draft(path: str, data: bytes) -> str:
    """Writes a new file beside `path`, flushed to the disk, and returns its path."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=folder)  # has mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(draft)
        raise
    return draft


def replace_file(path: str, data: bytes) -> None:
    """Replaces the file atomically: a crash leaves either the old or the new content."""
    draft = write_draft(path, data)
    try:
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
