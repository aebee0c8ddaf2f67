"""What every object store must do: subclass the contract and give it a `store` fixture."""

import threading

import pytest

from tenure.objects.port import ObjectExistsError, ObjectMissingError, ObjectStore

BAD_KEYS = (
    "",
    "/a",
    "a/",
    "a//b",
    "../a",
    "a/../b",
    "a/./b",
    ".",
    "a/.hidden",
    "a b",
    "a\\b",
    "a\0b",
    "ä",
    "a\n",
    "a" * 901,
)


def put(store: ObjectStore, key: str, *blocks: bytes) -> None:
    with store.create(key) as writer:
        for block in blocks:
            writer.write(block)
        writer.commit()


def get(store: ObjectStore, key: str, **part) -> bytes:
    return b"".join(store.open(key, **part))


class ObjectStoreContract:
    def test_a_committed_object_is_read_back_whole(self, store):
        content = bytes(range(256)) * 9_000
        put(store, "t/acme/1/file.csv", content[:1_000_000], memoryview(content)[1_000_000:])
        assert get(store, "t/acme/1/file.csv") == content
        assert store.stat("t/acme/1/file.csv") == len(content)

    def test_an_empty_object_is_an_object(self, store):
        put(store, "empty")
        assert get(store, "empty") == b""
        assert store.stat("empty") == 0

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [(0, 3, b"012"), (7, None, b"789"), (4, 2, b"45"), (8, 100, b"89"), (10, None, b""), (50, 1, b""), (3, 0, b"")],
    )
    def test_a_range_is_what_was_asked_for(self, store, start, length, expected):
        put(store, "digits", b"0123456789")
        assert get(store, "digits", start=start, length=length) == expected

    def test_a_range_across_blocks_is_exact(self, store):
        content = b"".join(b"%09d\n" % number for number in range(300_000))
        put(store, "long", content)
        assert get(store, "long", start=1_048_570, length=1_500_000) == content[1_048_570:2_548_570]

    def test_nothing_is_visible_before_the_commit(self, store):
        with store.create("a/b") as writer:
            writer.write(b"half")
            assert list(store.list("")) == []
            with pytest.raises(ObjectMissingError):
                store.stat("a/b")
            writer.commit()
        assert list(store.list("")) == ["a/b"]

    def test_leaving_without_a_commit_leaves_nothing(self, store):
        with pytest.raises(RuntimeError), store.create("a/b") as writer:  # noqa: PT012
            writer.write(b"half")
            raise RuntimeError
        assert list(store.list("")) == []
        put(store, "a/b", b"whole")
        assert get(store, "a/b") == b"whole"

    def test_a_key_that_is_taken_is_refused(self, store):
        put(store, "a", b"first")
        with pytest.raises(ObjectExistsError):
            store.create("a")
        assert get(store, "a") == b"first"

    def test_of_two_writers_of_one_key_one_wins_and_the_other_is_told(self, store):
        with store.create("a") as one, store.create("a") as two:
            one.write(b"one")
            two.write(b"two")
            one.commit()
            with pytest.raises(ObjectExistsError):
                two.commit()
        assert get(store, "a") == b"one"
        assert list(store.list("")) == ["a"]

    def test_many_writers_at_once_leave_one_whole_object(self, store):
        barrier = threading.Barrier(8)
        told = []

        def write(letter: bytes) -> None:
            with store.create("race/x") as writer:
                writer.write(letter * 100_000)
                barrier.wait()
                try:
                    writer.commit()
                except ObjectExistsError:
                    told.append(letter)

        threads = [threading.Thread(target=write, args=(bytes([65 + number]),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 7
        assert len(set(get(store, "race/x"))) == 1
        assert list(store.list("race")) == ["race/x"]

    @pytest.mark.parametrize("key", BAD_KEYS)
    def test_a_key_that_is_no_key_is_refused(self, store, key):
        for use in (store.create, store.open, store.stat, store.delete_prefix):
            with pytest.raises(ValueError, match="not a valid object key"):
                use(key)

    @pytest.mark.parametrize("key", ["nothing", "a"])
    def test_what_is_not_there_is_reported_at_once(self, store, key):
        put(store, "a/b", b"x")
        with pytest.raises(ObjectMissingError):
            store.open(key)
        with pytest.raises(ObjectMissingError):
            store.stat(key)

    @pytest.mark.parametrize(("start", "length"), [(-1, None), (0, -1)])
    def test_a_negative_range_is_refused(self, store, start, length):
        put(store, "a", b"x")
        with pytest.raises(ValueError, match="negative"):
            store.open("a", start=start, length=length)

    def test_a_prefix_means_whole_segments(self, store):
        for key in ("t/a/1", "t/a/2/x", "t/ab/1", "z"):
            put(store, key, b"x")
        assert list(store.list("t/a")) == ["t/a/1", "t/a/2/x"]
        assert store.delete_prefix("t/a") == 2
        assert list(store.list("")) == ["t/ab/1", "z"]

    def test_deleting_nothing_is_no_error(self, store):
        assert store.delete_prefix("t/none") == 0
        assert list(store.list("t/none")) == []

    def test_an_object_deleted_while_it_is_read_is_read_to_its_end(self, store):
        content = b"x" * 3_000_000
        put(store, "t/a", content)
        blocks = store.open("t/a")
        first = next(blocks)
        store.delete_prefix("t")
        assert first + b"".join(blocks) == content

    def test_deleting_a_prefix_takes_unfinished_writers_along(self, store):
        with pytest.raises(Exception, match="t/a"), store.create("t/a") as writer:  # noqa: PT012
            writer.write(b"half")
            store.delete_prefix("t")
            writer.commit()
        assert list(store.list("")) == []
