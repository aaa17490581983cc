"""Carries HTTP from a port of this machine to a Unix socket, for clients that speak TCP alone.

    relay.py SOCKET PORT-FILE

The port that it got is written to PORT-FILE. An answer of GET /v1/events has no end; here it ends once nothing has come for a moment, so
that a client that reads answers whole can test it too.
"""

import asyncio
import os
import sys

QUIET = 0.2  # seconds without an event after which the stream ends
CHUNK = 256 * 1024


async def copy_requests(client, server, is_events):
    """Passes requests on; a request for events is told from the others by its first bytes, which arrive together."""
    while data := await client.read(CHUNK):
        if data.startswith(b"GET /v1/events"):
            is_events.set()
        server.write(data)
        await server.drain()
    server.write_eof()


async def copy_answers(server, client, is_events):
    """Passes answers on. What has come when the stream is quiet is whole chunks, as the daemon writes one an event."""
    is_stream = False
    while True:
        try:
            data = await asyncio.wait_for(server.read(CHUNK), QUIET)
        except TimeoutError:
            if not is_stream:
                continue
            client.write(b"0\r\n\r\n")
            data = b""
        if not data:
            break
        if is_events.is_set():
            is_stream = is_stream or b"transfer-encoding: chunked" in data.lower()
        client.write(data)
        await client.drain()
    client.close()


async def serve(path, client_reader, client_writer):
    server_reader, server_writer = await asyncio.open_unix_connection(path)
    is_events = asyncio.Event()
    requests = asyncio.create_task(copy_requests(client_reader, server_writer, is_events))
    try:
        await copy_answers(server_reader, client_writer, is_events)
    finally:
        requests.cancel()
        await asyncio.gather(requests, return_exceptions=True)
        server_writer.close()


async def main():
    path, port_file = sys.argv[1:]

    async def handle(client, answer):
        try:
            await serve(path, client, answer)
        except OSError:
            pass
        finally:
            answer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    with open(port_file + ".new", "w") as file:
        file.write(str(listener.sockets[0].getsockname()[1]))
    os.rename(port_file + ".new", port_file)
    await listener.serve_forever()


asyncio.run(main())
