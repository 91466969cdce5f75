"""What an entry may say about the signatures it receives: `webhook_*`, each held to the scheme that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.core.signatures import SCHEMES, SchemeOptions

#: Settings that become an option of the scheme, and the option's name.
SCHEME_SETTINGS: Mapping[str, str] = {
    "webhook_header": "header",
    "webhook_timestamp_header": "timestamp_header",
    "webhook_prefix": "prefix",
    "webhook_encoding": "encoding",
    "webhook_algorithm": "algorithm",
    "webhook_tolerance": "tolerance",
    "webhook_timestamp_unit": "timestamp_unit",
    "webhook_delivery_id_header": "delivery_id_header",
}


def signing_faults(scheme: str, named: Iterable[str]) -> Iterator[str]:
    """Yield a fault for each setting that is given and that the scheme does not read: it would change nothing.

    Args:
        scheme: a name in `SCHEMES`; of another one nothing can be said.
        named: the settings an entry gives.
    """
    if scheme not in SCHEMES:
        return
    for setting in named:
        option = SCHEME_SETTINGS.get(setting)
        if option is not None and option not in SCHEMES[scheme].reads:
            readers = ", ".join(name for name, each in SCHEMES.items() if option in each.reads)
            yield f"{setting} means nothing to scheme {scheme!r}; it is read by {readers}"
        if setting == "jwks_url" and SCHEMES[scheme].key_set_url is None:
            yield f"jwks_url means nothing to scheme {scheme!r}, which has no key set"


def options_from(settings: Mapping[str, object]) -> SchemeOptions:
    """Return the options that some settings make; what is None is left to the scheme."""
    chosen = {SCHEME_SETTINGS[name]: value for name, value in settings.items() if value is not None}
    return SchemeOptions(**chosen)  # type: ignore[arg-type] # each setting has been validated as its option's type
