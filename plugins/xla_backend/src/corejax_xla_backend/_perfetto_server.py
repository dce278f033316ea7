"""A server that hands one trace to the page of https://ui.perfetto.dev."""

from __future__ import annotations

import functools
import http.server
import os
from typing import Any

_PORT = 9001  # the only one of this machine that Perfetto reads from


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Gives files to Perfetto's page."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
        super().end_headers()

    def do_GET(self) -> None:
        super().do_GET()
        self.server.given = self.path  # type: ignore[attr-defined]

    def log_message(self, *args: Any) -> None:
        pass


def serve(path: str) -> None:
    """Print a link that opens a trace in Perfetto, and wait until it has been read."""
    directory, file = os.path.split(os.path.abspath(path))
    handler = functools.partial(_Handler, directory=directory)
    with http.server.HTTPServer(("127.0.0.1", _PORT), handler) as server:
        print(
            f"Open this link in a browser: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{_PORT}/{file}", flush=True
        )
        while getattr(server, "given", "") != f"/{file}":
            server.handle_request()
