"""Result files: signed URLs that run out, and the bytes behind them."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter, OrderedDict
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from homing.simulator.faults import Fault
from homing.simulator.instants import write_instant
from homing.simulator.models import ResultFile
from homing.simulator.run import Run
from jobs.clock import Clock

#: Oldest results leave first, so that a simulator left running does not grow for ever.
_KEPT_BYTES = 256_000_000

# How far in the past an expired URL ran out: more than any allowance for clocks that disagree.
_EXPIRED_FOR = timedelta(minutes=30)


class FileStore:
    """Keeps results and hands out URLs to them.

    Args:
        clock: decides what has run out.
        signing_key: of the URLs; secret.
        ttl: how long a URL is good.
        kept_bytes: bound of what is kept.
    """

    def __init__(self, clock: Clock, *, signing_key: str, ttl: timedelta, kept_bytes: int = _KEPT_BYTES) -> None:
        """See the class."""
        self._clock = clock
        self._key = signing_key.encode()
        self._ttl = ttl
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[str, str], ResultFile] = OrderedDict()
        self._size_bytes = 0
        self._minted: Counter[str] = Counter()
        self._served: Counter[tuple[str, str]] = Counter()

    def put(self, run_id: str, files: tuple[ResultFile, ...]) -> None:
        """Keep a run's results."""
        with self._lock:
            for file in files:
                self._files[run_id, file.name] = file
                self._size_bytes += len(file.content)
            while self._size_bytes > self._kept_bytes:
                self._size_bytes -= len(self._files.popitem(last=False)[1].content)

    def get(self, run_id: str, name: str) -> ResultFile | None:
        """Return a file that is still kept."""
        with self._lock:
            return self._files.get((run_id, name))

    def count_download(self, run_id: str, name: str) -> int:
        """Note a download; how many there were before it."""
        with self._lock:
            self._served[run_id, name] += 1
            return self._served[run_id, name] - 1

    def describe(self, run: Run, *, base_url: str) -> list[dict[str, object]]:
        """Return a run's artifacts with fresh URLs; the first ones of a run may be born expired."""
        if run.outcome is None or not run.outcome.files:
            return []
        with self._lock:
            self._minted[run.id] += 1
            first = self._minted[run.id] == 1
        expired = run.faults.artifact is Fault.URL_LOST or (run.faults.artifact is Fault.URL_EXPIRED and first)
        expires_at = self._clock.now() + (-_EXPIRED_FOR if expired else self._ttl)
        return [self._describe(run.id, file, expires_at=expires_at, base_url=base_url) for file in run.outcome.files]

    def is_good(self, path: str, *, expires: str, signature: str) -> bool:
        """Whether a URL is one of ours and has not run out."""
        signed = hmac.compare_digest(self._sign(path, expires).encode(), signature.encode("utf-8", "replace"))
        # Only what we wrote ourselves is read as a number.
        return signed and int(expires) > self._clock.now().timestamp()

    def _describe(self, run_id: str, file: ResultFile, *, expires_at: datetime, base_url: str) -> dict[str, object]:
        path, expires = f"/files/{run_id}/{quote(file.name)}", str(int(expires_at.timestamp()))
        return {
            "url": f"{base_url}{path}?expires={expires}&signature={self._sign(path, expires)}",
            "content_type": file.content_type,
            "size": len(file.content),
            "sha256": hashlib.sha256(file.content).hexdigest(),
            "expires_at": write_instant(datetime.fromtimestamp(int(expires), UTC)),
        }

    def _sign(self, path: str, expires: str) -> str:
        text = f"{path}?{expires}".encode("utf-8", "replace")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()
