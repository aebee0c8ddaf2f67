import pytest

from tenure.core.errors import ForbiddenError
from tenure.core.ids import TenantId
from tenure.core.keys import (
    KEY_CHARS,
    KEY_RANDOM_BYTES,
    NO_DIGEST,
    Principal,
    Scope,
    key_matches,
    make_key,
    read_authorization,
    read_key,
)

KEY = make_key(bytes(range(KEY_RANDOM_BYTES)))


def test_a_made_key_reads_back_and_matches_only_its_own_digest():
    presented = read_key(KEY.text)

    assert presented.key_id == KEY.key_id
    assert len(KEY.text) == KEY_CHARS
    assert key_matches(presented, KEY.digest)
    assert not key_matches(presented, NO_DIGEST)


def test_every_changed_character_is_another_key_or_none():
    for at in range(len(KEY.text)):
        changed = read_key(KEY.text[:at] + ("a" if KEY.text[at] != "a" else "b") + KEY.text[at + 1 :])
        assert changed is None or not key_matches(changed, KEY.digest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "tnr_live_",
        KEY.text[:-1],
        KEY.text + "a",
        KEY.text.upper(),
        KEY.text[:-1] + "ä",
        "a" * 1_000_000,
        KEY.text[:-1] + "\n",
    ],
)
def test_what_is_no_key_is_none(text):
    assert read_key(text) is None


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", f"Basic {KEY.text}", KEY.text, f"Bearer  {KEY.text}", f"Bearer {KEY.text} "],
)
def test_other_authorization_headers_are_none(header):
    assert read_authorization(header) is None


def test_the_scheme_may_be_written_in_any_case():
    assert read_authorization(f"bEARER {KEY.text}") == read_key(KEY.text)


def test_secrets_stay_out_of_repr():
    assert KEY.text not in repr(KEY)
    assert repr(KEY.digest) not in repr(KEY) + repr(read_key(KEY.text))


def test_a_key_needs_the_right_amount_of_randomness():
    with pytest.raises(ValueError, match="random bytes"):
        make_key(bytes(16))


def test_a_principal_acts_for_its_tenant_only_within_its_scopes():
    reader = Principal(key_id="k", tenant_id=TenantId("acme"), scopes=frozenset({Scope.EXPORTS_READ}))
    operator = Principal(key_id="o", tenant_id=None, scopes=frozenset({Scope.OPERATOR, Scope.EXPORTS_READ}))

    assert reader.tenant_for(Scope.EXPORTS_READ) == "acme"
    operator.require(Scope.OPERATOR)
    for refused in (
        lambda: reader.tenant_for(Scope.EXPORTS_EXECUTE),
        lambda: reader.require(Scope.OPERATOR),
        lambda: operator.tenant_for(Scope.EXPORTS_READ),
    ):
        with pytest.raises(ForbiddenError):
            refused()
