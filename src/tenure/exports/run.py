"""Carries out an export, in its own process and without Tenure's database: plan, read, write, prove, manifest.

What it returns is stored and proven, and nobody can see it yet: publishing is part of settling the job.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tenure.core.dataset import Catalogue
from tenure.core.errors import FieldProblem, InvalidRequestError
from tenure.core.export import ExportOrder, Package, PackageFile
from tenure.core.job import Fence
from tenure.core.manifest import MANIFEST_NAME, SUMS_NAME, Manifest
from tenure.encoders.compression import packer
from tenure.exports.manifest import build_manifest, checksums, encode_manifest
from tenure.exports.plan import Plan, PlannedFile, plan_export, read_requests
from tenure.exports.progress import Meter, Signals
from tenure.exports.read import read_file
from tenure.exports.write import FileWriter, Stored, attempt_prefix, prove_stored, write_object
from tenure.objects.port import ObjectExistsError, ObjectStore, ObjectStoreError
from tenure.sources.postgres import PostgresSource, open_postgres
from tenure.sources.request import PostgresSettings, ReadRequest

SUMS_MEDIA_TYPE = "text/plain; charset=utf-8"

Views = Mapping[str, PostgresSource]


def run_export(
    order: ExportOrder,
    *,
    fence: Fence,
    catalogue: Catalogue,
    sources: Mapping[str, PostgresSettings],
    objects: ObjectStore,
    signals: Signals,
) -> Package:
    """Make the package of an order; the export's id is the job's. `sources` are the settings by source name.

    Raises ExportError and its kin, ObjectStoreError, InvalidRequestError, and whatever `signals.check_cancelled`
    raises. By then the sources' queries are ended and nothing of this attempt is left in the store.
    """
    attempt = _Attempt(
        order=order,
        fence=fence,
        objects=objects,
        prefix=attempt_prefix(order.tenant_id, fence),
        meter=Meter(signals),
    )
    with _leaving_nothing_behind(attempt):
        attempt.meter.enter("plan")
        requests = read_requests(order, catalogue)
        with _views(attempt, requests, sources) as views:
            plan = plan_export(order, requests, views)
            attempt.meter.enter("read", rows_expected=plan.rows)
            stored = tuple(_store_file(attempt, plan, planned, views) for planned in plan.files)
        # The views are closed: a snapshot holds back the source's vacuum, so it lives no longer than the reading.
        attempt.meter.enter("publish")
        for item in stored:
            prove_stored(objects, item, attempt.meter.tick)
        return _package(attempt, build_manifest(order, fence.job_id, plan, stored), stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """What every step of one run needs."""

    order: ExportOrder
    fence: Fence
    objects: ObjectStore
    prefix: str
    meter: Meter


@contextmanager
def _leaving_nothing_behind(attempt: _Attempt) -> Iterator[None]:
    """Only a package that is whole may stay. The keys name this attempt, so nothing of another one can go.

    Raises ObjectExistsError when this very attempt was run before: what it left may be published and is not touched.
    """
    if any(True for _ in attempt.objects.list(attempt.prefix)):
        raise ObjectExistsError(f"there are objects below {attempt.prefix}: this attempt has been run before")
    try:
        yield
    except BaseException as error:
        try:
            attempt.objects.delete_prefix(attempt.prefix)
        except ObjectStoreError as leftover:
            # The failure that led here is the one to report; what stays is swept with the attempt's prefix later.
            error.add_note(f"objects of this attempt may remain: {leftover}")
        raise


@contextmanager
def _views(
    attempt: _Attempt,
    requests: tuple[ReadRequest, ...],
    sources: Mapping[str, PostgresSettings],
) -> Iterator[Views]:
    """One open view for each source that is read, all before the first row leaves any of them."""
    with ExitStack() as stack:
        views: dict[str, PostgresSource] = {}
        for name in dict.fromkeys(request.dataset.source for request in requests):
            if name not in sources:
                raise InvalidRequestError(FieldProblem(pointer=f"/sources/{name}", detail="not in the settings"))
            view = open_postgres(
                sources[name],
                tenant_id=attempt.order.tenant_id,
                label=f"tenure export {attempt.fence.job_id} {attempt.fence.attempt}",
                tick=attempt.meter.tick,
            )
            views[name] = stack.enter_context(view)
        yield views


def _store_file(attempt: _Attempt, plan: Plan, planned: PlannedFile, views: Views) -> Stored:
    meter = attempt.meter
    bytes_before = meter.bytes_done
    key = f"{attempt.prefix}/{planned.name}"
    with FileWriter(attempt.objects, key, packer(attempt.order.spec.compression), meter.tick) as writer:

        def emit(block: bytearray, rows: int) -> None:
            writer.put(block)
            meter.add_rows(rows)
            meter.bytes_done = bytes_before + writer.bytes_stored

        read_file(views[planned.request.dataset.source], planned, plan.dialect, emit)
        stored = writer.finish()
    meter.bytes_done = bytes_before + stored.bytes
    return stored


def _package(attempt: _Attempt, manifest: Manifest, stored: tuple[Stored, ...]) -> Package:
    """Write the checksums, then, last of all, the manifest: a package with a manifest is whole."""
    manifest_bytes = encode_manifest(manifest)
    sums = _store_proven(attempt, SUMS_NAME, checksums(manifest, manifest_bytes))
    written = _store_proven(attempt, MANIFEST_NAME, manifest_bytes)
    files = [
        PackageFile(
            name=file.name,
            key=item.key,
            media_type=file.media_type,
            rows=file.rows,
            bytes=file.bytes,
            sha256=file.sha256,
        )
        for file, item in zip(manifest.files, stored, strict=True)
    ]
    files.append(
        PackageFile(
            name=SUMS_NAME,
            key=sums.key,
            media_type=SUMS_MEDIA_TYPE,
            rows=0,
            bytes=sums.bytes,
            sha256=sums.sha256,
        ),
    )
    return Package(
        manifest_key=written.key,
        manifest_sha256=written.sha256,
        manifest_bytes=written.bytes,
        rows=manifest.rows,
        bytes=manifest.bytes,
        files=tuple(files),
    )


def _store_proven(attempt: _Attempt, name: str, content: bytes) -> Stored:
    stored = write_object(attempt.objects, f"{attempt.prefix}/{name}", content)
    prove_stored(attempt.objects, stored, attempt.meter.tick)
    return stored
