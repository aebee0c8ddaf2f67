"""The few pages people see: the front door, the console's place, and what each error code means."""

import base64
import hashlib
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from tenure.api.answers import json_answer
from tenure.api.documents import ErrorDocument, ErrorList
from tenure.api.problems import STATUS_BY_CODE, error_classes
from tenure.api.reading import accepts_any
from tenure.core.errors import NotFoundError, TenureError

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5a6675;--line:#dfe4ea;--paper:#fff;--mark:#0b6e5f}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaef;--soft:#9aa7b5;--line:#2c3642;--paper:#12171d;--mark:#5fd0bd}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif}
main{max-width:42rem;margin:0 auto;padding:12vh 1.5rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .5rem;letter-spacing:-.02em}
p{margin:.5rem 0 1.25rem;color:var(--soft)}
a{color:var(--mark);text-underline-offset:.2em}
dl{border-top:1px solid var(--line);margin:2rem 0}
dt{font-weight:600;margin-top:1rem}
dd{margin:0;padding-bottom:1rem;border-bottom:1px solid var(--line);color:var(--soft)}
code{font:.9em ui-monospace,monospace}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
}
FRONT_ROWS = (
    ("/openapi.json", "The API, described in OpenAPI 3.1."),
    ("/v1/datasets", "What can be exported; send a key."),
    ("/errors", "Every error code and what to do about it."),
    ("/console", "The operators' console."),
    ("/readyz", "Whether this server can work."),
)


async def show_front(_: Request) -> Response:
    rows = "".join(f'<dt><a href="{path}">{path}</a></dt><dd>{escape(text)}</dd>' for path, text in FRONT_ROWS)
    return _page("Tenure", f"<p>Data exports, served fairly. This is the API server.</p><dl>{rows}</dl>")


async def show_console(_: Request) -> Response:
    return _page(
        "Console",
        "<p>The console is not part of this version yet. Until then the command line shows the same: "
        "<code>tenure jobs</code>, <code>tenure why</code>.</p><p><a href='/'>Back</a></p>",
    )


async def list_errors(request: Request) -> Response:
    """The taxonomy, as a page for browsers and as JSON for everybody else."""
    documents = tuple(map(_error_document, error_classes()))
    if not _wants_page(request):
        return json_answer(ErrorList(errors=documents), headers={"Vary": "Accept"})
    rows = "".join(
        f'<dt><a href="/errors/{item.code}"><code>{item.code}</code></a> · {item.status}</dt>'
        f"<dd>{escape(item.title)}</dd>"
        for item in documents
    )
    return _page("Errors", f"<p>Codes are stable; texts may change.</p><dl>{rows}</dl>")


async def show_error(request: Request) -> Response:
    """What `type` in a problem leads to."""
    code = request.path_params["code"]
    found = next((item for item in error_classes() if item.code == code), None)
    if found is None:
        raise NotFoundError("error code")
    document = _error_document(found)
    if not _wants_page(request):
        return json_answer(document, headers={"Vary": "Accept"})
    again = "The same request may work later." if document.retryable else "The same request will fail again."
    return _page(
        document.title,
        f"<p><code>{document.code}</code> · HTTP {document.status}</p>"
        f"<dl><dt>What to do</dt><dd>{escape(document.what_to_do)}</dd><dt>Trying again</dt><dd>{again}</dd></dl>"
        "<p><a href='/errors'>All errors</a></p>",
    )


def _error_document(error: type[TenureError]) -> ErrorDocument:
    return ErrorDocument(
        code=error.code,
        title=error.title,
        status=STATUS_BY_CODE[error.code],
        retryable=error.retryable,
        what_to_do=error.what_to_do,
    )


def _wants_page(request: Request) -> bool:
    return accepts_any(request.headers.get("accept", ""), ("text/html",))


def _page(title: str, inner: str) -> Response:
    heading = escape(title)
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{heading}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main><h1>{heading}</h1>{inner}</main></body></html>"
    )
    return Response(html, headers={**PAGE_HEADERS, "Vary": "Accept"}, media_type="text/html")
