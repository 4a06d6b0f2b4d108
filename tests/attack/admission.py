"""Who may come in: tokens wrong, missing, replayed, reflected; networks."""

import contextlib
import os
import tempfile

import support
from guests import Guest, RUN, serve

SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "0123456789abcdef0123456789abcdeF"


def token_file(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "\n")
    return path


def client(port, *options, env=None):
    return support.run("write_bw", "127.0.0.1", "-p", port, *RUN, *options, env=env)


def tokens(row):
    with tempfile.TemporaryDirectory() as folder:
        right = token_file(folder, "right", SECRET)
        wrong = token_file(folder, "wrong", OTHER)
        with serve("--token", right) as server:
            row.note(SECRET not in "".join(server.lines), "the secret is in the log")
            for _ in row.times(1, 20):
                result = client(server.port, "--token", right)
                row.note(result.code == 0, str(result))
                row.note(client(server.port, env={"GDRPERF_TOKEN_FILE": right}).code == 0, "GDRPERF_TOKEN_FILE")
                row.note(client(server.port, env={"GDRPERF_TOKEN": SECRET}).code == 0, "GDRPERF_TOKEN")
                result = client(server.port, "--token", wrong)
                row.note(result.code == 5, str(result))
                row.expect("the client's token is not the server's", result.err)
                result = client(server.port)
                row.note(result.code == 5, str(result))
                row.expect("serves only clients that have its token", result.err)
        with serve() as server:
            result = client(server.port, "--token", right)
            row.note(result.code == 5, str(result))
            row.expect("cannot prove that it is the server you mean", result.err)
        with serve("--token", wrong) as server:
            result = client(server.port, "--token", right)
            row.note(result.code == 5, str(result))


def replay(row):
    """An overheard proof, the server's own words sent back, guesses, and going on without any."""
    with tempfile.TemporaryDirectory() as folder:
        right = token_file(folder, "right", SECRET)
        heard = []

        with serve("--token", right) as server:
            def listen(peer):
                heard.append(peer.greet(token=1))
                heard.append(peer.receive())

            with support.fake_server(listen) as port:
                client(port, "--token", right)
            nonce, proof = heard[0]["nonce"], heard[1]["hmac"]
            row.note(SECRET not in str(heard), "the secret was sent")
            for _ in row.times(3, 300):
                refused(row, server, proof, nonce)
                refused(row, server, os.urandom(32).hex())
                refused(row, server, "")
                with Guest(server.port) as guest, contextlib.suppress(OSError, EOFError):
                    guest.greet(token=1)
                    guest.send(type="enter")
                    text, _ = guest.until_closed()
                    row.note('"turn"' not in text, text)
                with Guest(server.port) as guest:  # its own nonce sent back to it
                    nonce_of_server = guest.receive()["nonce"]
                    guest.send(type="hello", magic="gdrperf", major=2, minor=0, tool_version="x", host="x",
                               nonce=nonce_of_server, token=1)
                    text, _ = guest.until_closed()
                    row.expect("no proper nonce", text)
            row.serves(server, "--token", right)


def refused(row, server, proof, nonce=None):
    with Guest(server.port) as guest, contextlib.suppress(OSError, EOFError):
        guest.greet(nonce=nonce, token=1)
        guest.send(type="proof", hmac=proof)
        guest.send(type="enter")
        text, seconds = guest.until_closed()
        row.expect("the client's token is not the server's", text)
        row.took(seconds, "the refusal of a proof")


def networks(row):
    with serve("--allow", "192.0.2.0/24,2001:db8::/32") as server:
        for _ in row.times(2, 100):
            result = client(server.port)
            row.note(result.code == 5, str(result))
            row.expect("does not serve your address", result.err)
    with serve("--allow", "192.0.2.0/24,127.0.0.0/8") as server:
        row.serves(server)


ATTACKS = [
    ("tokens: right, wrong and missing, at either end", tokens, False),
    ("tokens: replayed, reflected, guessed, left out", replay, False),
    ("clients from outside --allow", networks, False),
]
