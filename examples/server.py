"""Serves a network that 'loopegg compile MODEL --out DIR' wrote over HTTP: POST the inputs as raw float32 numbers, one input after another, and the answer holds the
outputs in the same way. Each connection has a thread, and each thread a context; all read the same weights.

    python3 examples/server.py DIR 8080

It listens on this machine alone, and prints the port (port 0: any that is free).
"""
import http.server
import math
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import loopegg_network   # noqa: E402

NETWORK = loopegg_network.Network(sys.argv[1])
SIZES = [math.prod(shape) for shape in NETWORK.inputs.values()]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"   # a connection is kept for the next request

    def do_POST(self):
        if int(self.headers.get("Content-Length", 0)) != 4 * sum(SIZES):
            self.close_connection = True
            return self.send_error(400, f"POST {4 * sum(SIZES)} bytes of float32 numbers")
        values = numpy.frombuffer(self.rfile.read(4 * sum(SIZES)), numpy.float32)
        parts = numpy.split(values, numpy.cumsum(SIZES)[:-1])
        outputs = NETWORK(*(p.reshape(s) for p, s in zip(parts, NETWORK.inputs.values())))
        body = b"".join(o.tobytes() for o in (outputs if isinstance(outputs, tuple) else (outputs,)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
