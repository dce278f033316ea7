"""A local server that serves one trace to the page https://ui.perfetto.dev."""

from __future__ import annotations

import functools
import http.server
import os
from typing import Any

_PORT = 9001  # the only local port that Perfetto reads from


class _Handler(http.server.SimpleHTTPRequestHandler):
    """A handler that serves files to Perfetto's page and records the last path."""

    def end_headers(self) -> None:
        """Allow Perfetto's page to read the response."""
        self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
        super().end_headers()

    def do_GET(self) -> None:
        """Serve a file, and record its path."""
        super().do_GET()
        self.server.served_path = self.path  # type: ignore[attr-defined]  # an attribute of this server

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def serve(path: str) -> None:
    """Print a link that opens a trace in Perfetto, and wait until Perfetto has read the trace."""
    directory, file = os.path.split(os.path.abspath(path))
    handler = functools.partial(_Handler, directory=directory)
    with http.server.HTTPServer(("127.0.0.1", _PORT), handler) as server:
        print(
            f"Open this link in a browser: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{_PORT}/{file}", flush=True
        )
        while getattr(server, "served_path", "") != f"/{file}":
            server.handle_request()
