from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

import pytest
from api_fakes import EXPORT_ID, LINK_KEY, NOW, finished_view, package_file, view
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import limits
from tenure.core.errors import GoneError, NotFoundError
from tenure.core.export import ExportStatus
from tenure.core.ids import JobId, TenantId
from tenure.exports.download import LinkGrant, LinkKey, LinkRefusedError, check_link, find_file, link_expiry, sign_link

GRANT = LinkGrant(tenant_id=TenantId("acme"), export_id=EXPORT_ID, file="orders.csv")
NEWER_KEY = LinkKey(kid="k2", secret=bytes(range(1, 33)))
HOUR = NOW + timedelta(hours=1)


def parts_of(link):
    split = urlsplit(link)
    _, _, _, export_id, file = split.path.split("/")
    return {
        "export_id": export_id,
        "file": unquote(file),
        "query": dict(parse_qsl(split.query, keep_blank_values=True)),
    }


def signed(grant=GRANT, keys=(LINK_KEY,), expires_at=HOUR):
    return parts_of(sign_link(keys, grant, expires_at=expires_at))


def check(parts, keys=(LINK_KEY,), now=NOW):
    return check_link(keys, **parts, now=now)


@given(
    tenant=st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])),
    file=st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="/")),
    export_id=st.uuids(),
)
def test_a_signed_link_grants_exactly_what_was_signed(tenant, file, export_id):
    grant = LinkGrant(tenant_id=TenantId(tenant), export_id=JobId(export_id), file=file)

    assert check(signed(grant)) == grant


def test_any_flipped_bit_of_any_part_is_refused():
    genuine = signed()
    for name in ("tenant", "expires", "kid", "signature"):
        text = genuine["query"][name].encode()
        for bit in range(len(text) * 8):
            flipped = bytearray(text)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(LinkRefusedError):
                check({**genuine, "query": {**genuine["query"], name: flipped.decode("latin-1")}})


@pytest.mark.parametrize(
    "change",
    [
        {"file": "other.csv"},
        {"file": "orders.csv\0"},
        {"export_id": str(UUID(int=5))},
        {"export_id": str(EXPORT_ID).upper()},
        {"export_id": f"urn:uuid:{EXPORT_ID}"},
        {"export_id": "x"},
    ],
)
def test_another_file_or_export_is_refused(change):
    with pytest.raises(LinkRefusedError):
        check({**signed(), **change})


@pytest.mark.parametrize("expires", ["", "-1", "0", "01", "1e9", " 1", "+1", "٣", "1.0", "9" * 12, "9" * 5000])
def test_an_expiry_in_any_other_spelling_is_refused(expires):
    genuine = signed()
    with pytest.raises(LinkRefusedError):
        check({**genuine, "query": {**genuine["query"], "expires": expires}})


@pytest.mark.parametrize("name", ["tenant", "expires", "kid", "signature"])
def test_a_missing_part_is_refused(name):
    genuine = signed()
    with pytest.raises(LinkRefusedError):
        check({**genuine, "query": {key: value for key, value in genuine["query"].items() if key != name}})


def test_an_extra_part_is_refused():
    genuine = signed()
    with pytest.raises(LinkRefusedError):
        check({**genuine, "query": {**genuine["query"], "x": "1"}})


@pytest.mark.parametrize("signature", ["", "ä", "\ud800", "a" * 43, "a" * 100_000])
def test_a_foreign_signature_is_refused(signature):
    genuine = signed()
    with pytest.raises(LinkRefusedError):
        check({**genuine, "query": {**genuine["query"], "signature": signature}})


def test_expiry_is_told_only_to_those_with_a_genuine_link():
    genuine = signed()
    forged = {**genuine, "query": {**genuine["query"], "signature": "a" * 43}}
    with pytest.raises(GoneError):
        check(genuine, now=HOUR)
    with pytest.raises(LinkRefusedError):
        check(forged, now=HOUR)

    assert check(genuine, now=HOUR - timedelta(seconds=1)) == GRANT


def test_a_genuine_link_that_lasts_longer_than_any_link_may_is_refused():
    with pytest.raises(LinkRefusedError):
        check(signed(expires_at=NOW + timedelta(seconds=limits.LINK_SECONDS_MAX + 3600)))


def test_rotation_keeps_older_links_alive_until_their_key_goes():
    old = signed()

    assert check(old, keys=(NEWER_KEY, LINK_KEY)) == GRANT
    assert signed(keys=(NEWER_KEY, LINK_KEY))["query"]["kid"] == "k2"
    with pytest.raises(LinkRefusedError):
        check(old, keys=(NEWER_KEY,))


def test_two_keys_under_one_name_do_not_vouch_for_each_other():
    with pytest.raises(LinkRefusedError):
        check(signed(), keys=(LinkKey(kid="k1", secret=bytes(32)),))


def test_the_parts_of_a_link_cannot_flow_into_one_another():
    """Under one secret, `k1`+`acme` and `k1a`+`cme` would be one text if parts were merely put together."""
    keys = tuple(LinkKey(kid=kid, secret=LINK_KEY.secret) for kid in ("k1", "k1a", "k3"))
    genuine = signed()
    for change in ({"kid": "k1a", "tenant": "cme"}, {"kid": "k3"}):
        with pytest.raises(LinkRefusedError):
            check({**genuine, "query": {**genuine["query"], **change}}, keys=keys)


@pytest.mark.parametrize(
    ("kid", "secret"), [("", bytes(32)), ("a b", bytes(32)), ("k", bytes(31)), ("k" * 33, bytes(32))]
)
def test_a_weak_or_badly_named_key_is_refused(kid, secret):
    with pytest.raises(ValueError, match="link key"):
        LinkKey(kid=kid, secret=secret)


def test_the_secret_stays_out_of_repr():
    assert "secret" not in repr(LINK_KEY)


@given(
    link_seconds=st.integers(60, limits.LINK_SECONDS_MAX),
    now=st.datetimes(datetime(2024, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_a_link_lasts_about_as_long_as_asked_and_never_too_long(link_seconds, now):
    finished = finished_view(expires_at=now + timedelta(days=30))
    finished = replace(finished, spec=replace(finished.spec, link_seconds=link_seconds))
    seconds = (link_expiry(finished, now=now) - now).total_seconds()

    assert (
        min(link_seconds, limits.LINK_SECONDS_MAX - 300) - 1
        <= seconds
        <= min(link_seconds + 300, limits.LINK_SECONDS_MAX)
    )
    assert check(signed(expires_at=link_expiry(finished, now=now)), now=now) == GRANT


def test_a_link_never_outlives_its_package():
    assert link_expiry(finished_view(expires_at=NOW + timedelta(seconds=9)), now=NOW) == NOW + timedelta(seconds=9)


def test_a_file_is_found_by_its_name_and_the_manifest_by_its():
    two = finished_view(package_file("a.csv"), package_file("b.csv"))

    assert find_file(two, "b.csv", now=NOW).key == "k/b.csv"
    assert find_file(two, "manifest.json", now=NOW).media_type == "application/json"


@pytest.mark.parametrize("name", ["", "..", "../a.csv", "A.CSV", "k/a.csv", "a.csv\0"])
def test_other_names_lead_nowhere(name):
    with pytest.raises(NotFoundError):
        find_file(finished_view(package_file("a.csv")), name, now=NOW)


@pytest.mark.parametrize("status", [status for status in ExportStatus if status not in {"succeeded", "expired"}])
def test_before_publication_there_is_no_file(status):
    with pytest.raises(NotFoundError):
        find_file(view(status=status), "orders.csv", now=NOW)


@pytest.mark.parametrize(
    "changes",
    [{"status": ExportStatus.EXPIRED}, {"expires_at": NOW}, {"status": ExportStatus.EXPIRED, "package": None}],
)
def test_after_expiry_the_file_is_gone(changes):
    with pytest.raises(GoneError):
        find_file(finished_view(**changes), "orders.csv", now=NOW)
