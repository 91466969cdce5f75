"""One file from a provider: downloaded, judged, and the fresh link where the old one is dead."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from jobs.config.providers import ProviderConfig
from jobs.core.addresses import read_url
from jobs.core.errors import JobsError, Transient
from jobs.core.media import end_fault, judge_type
from jobs.net.download import Damaged, Download, download
from jobs.net.guard import Guard
from jobs.net.guarded import Credential, GuardedClient
from jobs.net.http import Bounds
from jobs.providers.port import GivesFilesToItsKey, Gone
from jobs.services.runtime import ProviderEntry
from jobs.storage.jobs import Row

#: A whole file may take long; a server that says nothing for so long has died.
BOUNDS = Bounds(connect_s=5.0, read_s=20.0, total_s=25 * 60.0)


class Unfit(Damaged):
    """What came is not the file that was promised; a provider may still be at it, so a few tries are worth it."""

    slug = "unfit"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that was judged good."""

    content_type: str
    size: int
    sha256: str


def fetch_file(guard: Guard, entry: ProviderEntry, link: Mapping[str, Any], file: BinaryIO) -> Fetched:
    """Downloads what a link leads to into ``file``, and judges it. Our credential goes to the provider's own host only.

    Raises:
        AddressRefused, LinkGone, TooLarge: See :func:`jobs.net.download.download`.
        Unfit: It is not the promised file.
        Transient: It did not come.
    """
    config = entry.config
    try:
        got = download(
            GuardedClient(guard, bounds=BOUNDS),
            link["url"],
            file,
            max_bytes=config.artifacts.max_bytes,
            allowed=config.private_addresses,
            credential=_credential(entry),
        )
    except Damaged as damaged:
        raise Unfit(damaged.detail) from damaged
    content_type = _judged(got, link, config, file)
    return Fetched(content_type, got.size, got.sha256)


def _credential(entry: ProviderEntry) -> Credential | None:
    if not isinstance(entry.adapter, GivesFilesToItsKey):
        return None
    return Credential(read_url(entry.config.base_url).origin, entry.adapter.file_headers)


def _judged(got: Download, link: Mapping[str, Any], config: ProviderConfig, file: BinaryIO) -> str:
    if got.size == 0:
        raise Unfit("it is empty")
    if link["size_bytes"] not in (None, got.size):
        raise Unfit(f"it was said to have {link['size_bytes']} bytes and has {got.size}")
    ending = mimetypes.guess_type(urlsplit(link["url"]).path)[0]
    said = (link["content_type"], got.content_type, ending)
    content_type, fault = judge_type(got.head, wanted=config.artifacts.types, said=said)
    fault = fault or end_fault(file, size=got.size, content_type=content_type)
    if fault is not None:
        raise Unfit(fault)
    if link["sha256"] is not None and link["sha256"].lower() != got.sha256:
        raise Unfit("its SHA-256 is not the one the provider named")
    return content_type


def fresh_link(entry: ProviderEntry, job: Row, row: Row) -> Row | JobsError | None:
    """The file's link as the provider names it now; None where it no longer does; an error where it did not answer."""
    run = job["provider_job_id"]
    if run is None or job["attempt"] != row["attempt"]:
        return None
    try:
        report = entry.adapter.status(entry.adapter.capabilities.address(run, job["input"]))
    except Gone:
        return None
    except JobsError as error:
        return error
    except Exception as error:  # noqa: BLE001 - an adapter's defect is this file's trouble only
        return Transient(f"the adapter raised {type(error).__name__}")
    if row["position"] >= len(report.links):
        return None
    link = report.links[row["position"]]
    return {name: getattr(link, name) for name in ("url", "content_type", "size_bytes", "sha256", "expires_at")}
