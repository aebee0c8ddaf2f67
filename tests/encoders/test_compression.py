import gzip
import zlib

import pytest

from tenure.core.export import Compression
from tenure.encoders.compression import packer

BLOCKS = [b"header\n", b"", bytearray(b"row,1\n" * 200_000), memoryview(b"row,2\n" * 100_000)]


def packed(how: Compression) -> bytes:
    stream = packer(how)
    return b"".join([bytes(stream.pack(block)) for block in BLOCKS]) + stream.finish()


@pytest.mark.parametrize("how", list(Compression))
def test_equal_blocks_give_equal_bytes(how):
    assert packed(how) == packed(how)


def test_plain_bytes_pass_through():
    assert packed(Compression.NONE) == b"".join(bytes(block) for block in BLOCKS)


def test_gzip_gives_back_what_went_in():
    assert gzip.decompress(packed(Compression.GZIP)) == packed(Compression.NONE)


def test_gzip_is_one_member_so_that_no_reader_stops_early():
    reader = zlib.decompressobj(31)
    assert reader.decompress(packed(Compression.GZIP)) == packed(Compression.NONE)
    assert reader.eof
    assert reader.unused_data == b""


def test_the_gzip_header_holds_no_time_and_no_name():
    head = packed(Compression.GZIP)[:10]
    assert head[3] == 0
    assert head[4:8] == bytes(4)


def test_a_gzip_file_of_nothing_is_a_valid_one():
    stream = packer(Compression.GZIP)
    assert gzip.decompress(stream.finish()) == b""
