import pytest

from tenure.core.errors import InvalidSettingsError
from tenure.core.export import Compression, ExportSettings
from tenure.core.manifest import Dialect
from tenure.encoders.csv import csv_dialect, file_name, header_line, media_type


def test_plain_names_stay_unquoted():
    assert header_line(["id", "größe"], Dialect()) == "id,größe\n".encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a,b", b'"a,b"\n'),
        ('say "hi"', b'"say ""hi"""\n'),
        ("a\nb", b'"a\nb"\n'),
        ("a\rb", b'"a\rb"\n'),
        ("", b'""\n'),
        (" a ", b'" a "\n'),
    ],
)
def test_a_name_that_a_reader_could_misread_is_quoted(name, expected):
    assert header_line([name], Dialect()) == expected


def test_the_delimiter_of_the_dialect_is_the_one_that_needs_quotes():
    assert header_line(["a,b", "c;d"], Dialect(delimiter=";")) == b'a,b;"c;d"\n'


def test_without_a_header_there_is_no_line():
    assert header_line(["id"], Dialect(header=False)) == b""


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "a", "0", "\\", "§", " ", "'"])
def test_a_delimiter_that_could_be_data_is_refused(delimiter):
    with pytest.raises(InvalidSettingsError, match="csv_delimiter"):
        csv_dialect(ExportSettings(csv_delimiter=delimiter))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_usual_delimiters_pass_into_the_dialect(delimiter):
    settings = ExportSettings(csv_delimiter=delimiter, csv_header=False)
    assert csv_dialect(settings) == Dialect(delimiter=delimiter, header=False)


def test_compression_shows_in_name_and_media_type():
    assert [file_name("orders", how) for how in Compression] == ["orders.csv", "orders.csv.gz"]
    assert [media_type(how) for how in Compression] == ["text/csv; charset=utf-8", "application/gzip"]
