"""Every mistake in a description is named, with the line it stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.config.loading import load
from jobs.core.errors import ConfigError

GOOD = """
[providers.acme]
adapter = "declarative"
base_url = "https://api.acme.example/v1"
auth = { header = "Authorization", value = "Bearer ${secret.token}" }
secrets = { token = "t" }
values = { region = "eu" }
webhook_secrets = ["a-secret-of-some-length-123"]

[providers.acme.submit]
call = "POST /generations"
body = { prompt = "${input.prompt}", callback_url = "${callback_url}" }
idempotency = { header = "Idempotency-Key", window = "24h" }
id = "id"

[providers.acme.search]
call = "GET /generations?reference=${attempt.token}"
id = "items[0].id"

[providers.acme.status]
call = "GET /generations/${job.provider_job_id}"
state = "status"
states = { pending = ["queued"], running = ["processing"], succeeded = ["done"], failed = ["error", "moderated"] }
failed_if = "error != null"
error = "error.message"
output = "result"
progress = "progress"
cost = "usage.usd"
gone = [404, 410]

[providers.acme.cancel]
call = "POST /generations/${job.provider_job_id}/cancel"

[providers.acme.webhook]
scheme = "hmac-body"
header = "X-Acme-Signature"
prefix = "sha256="
delivery_id = "event_id"
job_id = "generation.id"
state = "generation.status"

[providers.acme.artifacts]
urls = "result.files[].url"
expires = "1h"
refresh = "status"
"""


def faults_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "homing.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load({"HOMING_CONFIG": str(path)})
    return list(caught.value.faults)


def test_the_description_of_the_contract_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "homing.toml"
    path.write_text(GOOD, encoding="utf-8")

    entry = load({"HOMING_CONFIG": str(path)}).providers["acme"]

    assert entry.mapping is not None
    assert entry.mapping.calls_back
    assert (entry.webhook_scheme, entry.scheme_options.header) == ("hmac-body", "X-Acme-Signature")
    assert "t0" not in repr(entry)
    # Its events bring no result, so believing them would lose it.
    assert entry.mapping.webhook is not None
    assert entry.mapping.webhook.is_hint


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        # names
        ("state = \"status\"", "stat = \"status\"", "status.stat is unknown; did you mean state?"),
        ("state = \"status\"", "stat = \"status\"", "status.state is missing: a JMESPath expression"),
        ("[providers.acme.cancel]", "[providers.acme.cancell]", "acme.cancell is unknown; did you mean cancel?"),
        ("[providers.acme.submit]", "[providers.acme.sumbit]", "acme.submit is missing: how a run is begun"),
        ("[providers.acme.status]", "[providers.acme.statsu]", "acme.status is missing: how a run is read"),
        ('window = "24h"', 'windw = "24h"', "idempotency.windw is unknown; did you mean window?"),
        ("header = \"X-Acme", "headr = \"X-Acme", "webhook.headr is unknown; did you mean header?"),
        ("urls =", "url =", "artifacts.urls is missing"),
        ("job_id =", "jobid =", "webhook.job_id is missing"),
        # JMESPath
        ('"usage.usd"', '"usage..usd"', "status.cost is not JMESPath: unexpected '.usd' at character 7"),
        ('"error != null"', '"error !=="', "status.failed_if is not JMESPath"),
        ('"result.files[].url"', '"result.files["', "artifacts.urls is not JMESPath: it ends too early"),
        ('"error.message"', '"too_string(error)"', "status.error calls too_string(), which is unknown; did you mean"),
        ('output = "result"', "output = 3", "status.output must be a JMESPath expression"),
        # templates
        ("${input.prompt}", "${inptu.prompt}", "submit.body.prompt holds ${inptu.prompt}: inptu is unknown; did you"),
        ("${secret.token}", "${secret.tokn}", "auth.value holds ${secret.tokn}: secret.tokn is unknown; did you mean"),
        ("${secret.token}", "${secret.webhok}", "did you mean webhook?"),
        ("${input.prompt}", "${secret}", "write secret.<name>"),
        ("${input.prompt}", "${values.zone}", "values.zone is unknown; values has region"),
        ("${input.prompt}", "${attempt.id}", "attempt.id is unknown"),
        ("${input.prompt}", "${@}", "that is every value at once"),
        ("${input.prompt}", "${input.prompt", "opens ${ at character 1 and never closes it"),
        ("${input.prompt}", "${job.provider_job_id}", "job.provider_job_id is not known in submit; known"),
        ("${job.provider_job_id}/cancel", "${input.id}/cancel", "input is not known in cancel"),
        ("reference=${attempt.token}", "reference=${input.ref}", "input is not known in search"),
        ("${secret.token}", "${input.token}", "input is not known in auth"),
        # requests
        ("POST /generations\"\nbody", "PSOT /generations\"\nbody", "begins with 'PSOT', which is no method; did"),
        ("POST /generations\"\nbody", "POST generations\"\nbody", "must name a path that begins with /"),
        ("POST /generations\"\nbody", "POST https://evil.example/x\"\nbody", "must name a path that begins with /"),
        ("POST /generations\"\nbody", "POST ${input.x}\"\nbody", "must name a path that begins with /"),
        ("POST /generations\"\nbody", "POST /a/../b\"\nbody", "must name a path without"),
        ("POST /generations\"\nbody", "POST /a?b\"\nbody", "holds 'b' in its query; write name=value"),
        ("POST /generations\"\nbody", "POST /a b\"\nbody", "holds a blank"),
        ("POST /generations\"\nbody", "GET /generations\"\nbody", "submit.body cannot be sent with GET"),
        ('id = "id"', 'id = "id"\nheaders = { "X Y" = "1" }', "submit.headers.X Y is no header name"),
        ('id = "id"', 'id = "id"\nheaders = { Host = "evil" }', "submit.headers.Host is written by the client itself"),
        ('id = "id"', 'id = "id"\nencoding = "xml"', "submit.encoding 'xml' is unknown; known: json, form"),
        ('id = "id"', 'id = "id"\nquery = { a = 2026-01-01 }', "submit.query.a is a date or time"),
        ('header = "Idempotency-Key", window', "window", "idempotency.header is missing: name the header, or send"),
        ('window = "24h"', 'window = "a day"', "idempotency.window 'a day' is not a duration"),
        ('window = "24h"', 'reuse = "reject"', "idempotency.rejected_if is missing"),
        ('id = "items[0].id"', 'id = "id"\nmatch = "a"\nequals = "b"', "search.items is missing"),
        ('id = "items[0].id"', 'id = "id"\nitems = "a"\nmatch = "b"', "search must hold match together with equals"),
        # words
        ("succeeded =", "success =", "status.states.success is no state of ours; did you mean succeeded?"),
        ("succeeded =", "success =", "status.states has no word for succeeded"),
        ('"processing"', '"Queued "', "status.states.running[0] 'queued' is also a word for pending"),
        ('["queued"]', "[3]", "status.states.pending[0] must be a status word"),
        ("states = {", "states = [] #", "status.states must be a table"),
        ("gone = [404, 410]", 'gone = [404, "Done"]', "status.gone names 'done', which is also a word of states"),
        ("gone = [404, 410]", "gone = [200]", "status.gone must be HTTP statuses from 400 to 499"),
        ("gone = [404, 410]", "progress_max = 0", "status.progress_max must be a number above 0"),
        # the rest
        ('scheme = "hmac-body"', 'scheme = "hmac"', "webhook_scheme 'hmac' is unknown"),
        ('prefix = "sha256="', 'trust = "yes"', "webhook.trust 'yes' is unknown; known: state, hint"),
        ('refresh = "status"', 'refresh = "never"', "artifacts.refresh 'never' is unknown"),
        ('expires = "1h"', 'expires = "0s"', "artifacts.expires must be longer than 0"),
        ("secrets = { token = \"t\" }", "secrets = { token = 3 }", "secrets.token is no secret"),
        ("secrets = { token = \"t\" }", "secrets = { token = \"a\\nb\" }", "secrets.token holds a line break"),
        ("secrets = { token = \"t\" }", "secrets = 3", "secrets must be a table"),
        ("values = { region = \"eu\" }", "values = { region = [1] }", "values must be a table of texts"),
        ('auth = { header = "Authorization", ', "auth = { ", "auth must hold header and value"),
        ('header = "Authorization"', 'header = "Content-Length"', "is written by the client itself"),
        ("[providers.acme.cancel]", "[providers.acme.cancel]\nsettles = 1", "cancel.settles must be true or false"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path: Path, good: str, bad: str, words: str) -> None:
    assert GOOD.count(good) >= 1, good

    text = GOOD.replace(good, bad, 1)
    faults = faults_of(tmp_path, text)

    (fault,) = [fault for fault in faults if words in fault]
    file, line, _ = fault.split(":", 2)
    assert file == "homing.toml"
    assert _is_right(text, int(line), changed=GOOD[: GOOD.index(good)].count("\n") + 1, fault=fault)


def _is_right(text: str, line: int, *, changed: int, fault: str) -> bool:
    """The changed line or one it brought; or, for what is missing, the head of the table it is missing in."""
    here = text.splitlines()[line - 1]
    is_missing = " is missing" in fault or " must hold " in fault
    return changed <= line <= changed + 2 or (is_missing and here.startswith("["))


def test_all_mistakes_come_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD.replace("${input.prompt}", "${inptu}").replace('"usage.usd"', '"a..b"').replace('"24h"', '"x"')
    text = text.replace('adapter = "declarative"', 'adapter = "declarative"\nexpcted = "3s"\ndeadline = "1x"')

    faults = faults_of(tmp_path, text)

    lines = [int(fault.split(":")[1]) for fault in faults]
    assert len(faults) == 5
    assert lines == sorted(lines)


def test_a_section_in_an_entry_that_knows_its_provider_is_refused(tmp_path: Path) -> None:
    text = '[providers.sim]\nadapter = "simulator"\nbase_url = "http://h"\nsubmit = { call = "GET /" }\n'

    faults = faults_of(tmp_path, text)

    assert faults == [
        "homing.toml:4: providers.sim.submit is part of a description; it belongs to adapter 'declarative'"
    ]


def test_a_secret_that_is_not_set_is_named_once(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, GOOD.replace('token = "t"', 'token = { env = "NOPE" }'))

    assert faults == [
        "homing.toml:6: providers.acme.secrets.token names the environment variable NOPE, which is not set"
    ]
