"""The error tree: what each class tells a worker and a client."""

from __future__ import annotations

import inspect
import pickle
from datetime import timedelta

import pytest

from jobs.core import errors
from jobs.core.errors import (
    ConfigError,
    FieldFault,
    JobsError,
    Missing,
    NotFound,
    Permanent,
    SignatureError,
    Stale,
    Transient,
    Unavailable,
    UnknownOutcome,
    Unprocessable,
    Unusable,
)

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, JobsError)]
CONCRETE = [found for found in CLASSES if found not in (JobsError, SignatureError)]


@pytest.mark.parametrize("abstract", [JobsError, SignatureError])
def test_an_abstract_error_cannot_be_raised(abstract: type[JobsError]) -> None:
    with pytest.raises(TypeError, match="abstract"):
        abstract("anything")


@pytest.mark.parametrize("concrete", CONCRETE)
def test_every_error_tells_a_client_status_type_and_title(concrete: type[JobsError]) -> None:
    error = concrete("what happened")

    assert 400 <= error.status <= 599
    assert error.slug == error.slug.lower().replace("_", "-").replace(" ", "-") != ""
    assert error.title
    assert str(error) == error.detail == "what happened"


@pytest.mark.parametrize("concrete", CONCRETE)
def test_every_error_survives_the_way_between_processes(concrete: type[JobsError]) -> None:
    error = concrete("what happened")

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is concrete
    assert (copy.detail, copy.status, copy.slug) == (error.detail, error.status, error.slug)


def test_what_an_error_carries_survives_too() -> None:
    error = Unprocessable("no", slug="bad-input", fields=[FieldFault("input.prompt", "is empty")])
    waiting = Transient("busy", retry_after=timedelta(seconds=3))
    config = ConfigError(["first", "second"])

    copies = [pickle.loads(pickle.dumps(each)) for each in (error, waiting, config)]

    assert (copies[0].slug, copies[0].fields) == ("bad-input", error.fields)
    assert copies[1].retry_after == timedelta(seconds=3)
    assert copies[2].faults == ("first", "second")
    assert str(copies[2]) == "first\nsecond"


def test_a_worker_reads_from_the_class_whether_to_try_again() -> None:
    assert issubclass(Unavailable, Transient)
    assert issubclass(NotFound, Permanent)
    assert issubclass(Unusable, Permanent)
    assert not issubclass(UnknownOutcome, Transient | Permanent)
    assert not issubclass(Stale, Transient | Permanent)


def test_every_refused_signature_looks_the_same_from_outside() -> None:
    """F03: status, type and title are one shape; the reason is for our own log."""
    refusals = [found for found in CONCRETE if issubclass(found, SignatureError)]

    assert len({(found.status, found.slug, found.title) for found in refusals}) == 1
    assert len({found.reason for found in refusals}) == len(refusals) == 5
    assert str(Missing()) == "missing"


def test_an_error_without_a_text_says_its_title() -> None:
    assert str(NotFound()) == NotFound.title
