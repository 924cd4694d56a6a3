"""Downloads of akunu-cli from a server on 127.0.0.1 that stalls, cuts, lies, redirects and changes its mind.
After each fault there is the right file or a message, never a part in the place of a file, and the next run succeeds."""

import glob
import hashlib
import http.server
import json
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

CLI = os.environ["AK_CLI"]
with open(os.path.join(os.environ["AK_TEST_DATA"], "model.gguf"), "rb") as tiny:
    TINY = tiny.read()
TOKEN = "hf_SecretOfTheTest"
PATIENCE = 60 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)
# Several chunks: a chunk has at least 8 MiB.
BIG = b"GGUF" + random.Random(7).randbytes(20_000_000)
OTHER = b"GGUF" + random.Random(8).randbytes(20_000_000)

routes = {}
log = []
checks = failures = 0
last = None


def check(what, good):
    global checks, failures
    checks += 1
    if not good:
        failures += 1
        print("FAIL %s\n    %s" % (what, (last.stderr[-600:] if last else "").replace("\n", "\n    ")))


# ---- The server -----------------------------------------------------------
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        log.append((self.path, dict(self.headers)))
        route = routes.get(urllib.parse.unquote(self.path.split("?")[0]))
        try:
            route(self) if route else answer(self, 404, b"not here")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *arguments):
        pass


def answer(h, status, body=b"", **headers):
    h.send_response(status)
    for name, value in headers.items():
        h.send_header(name.replace("_", "-"), value)
    h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    h.wfile.write(body)


def span(h, size):
    """The bytes that are asked for."""
    text = h.headers.get("Range")
    if not text:
        return None
    first, after = text.split("=")[1].split("-")
    return int(first), min(int(after), size - 1) + 1


def send(h, data, etag='"v1"', ranges=True, shift=0, more=b"", cut=None, pace=None, stall=False, length=True, **headers):
    """A file. shift: of what Content-Range says; more: bytes too many; cut: sends so many and hangs up, or stalls."""
    part = span(h, len(data)) if ranges else None
    if part and h.headers.get("If-Range", etag) != etag:
        part = None
    first, end = part or (0, len(data))
    h.send_response(206 if part else 200)
    if part:
        h.send_header("Content-Range", "bytes %d-%d/%d" % (first + shift, end - 1 + shift, len(data)))
    if etag:
        h.send_header("ETag", etag)
    for name, value in headers.items():
        h.send_header(name.replace("_", "-"), value)
    if length:
        h.send_header("Content-Length", str(end - first + len(more)))
    else:
        h.send_header("Connection", "close")
        h.close_connection = True
    h.end_headers()
    body = data[first:end] + more
    if cut is not None and len(body) > cut:
        h.wfile.write(body[:cut])
        h.wfile.flush()
        if stall:
            time.sleep(6)
        h.close_connection = True
        h.connection.shutdown(socket.SHUT_RDWR)
        return
    if pace:
        for at in range(0, len(body), 1 << 16):
            h.wfile.write(body[at : at + (1 << 16)])
            time.sleep(pace)
    else:
        h.wfile.write(body)


def is_probe(h):
    return (h.headers.get("Range") or "").endswith("=0-63")


class Once:
    """The first `n` requests for data get one answer, the others another."""

    def __init__(self, n, first, then):
        self.left, self.first, self.then, self.lock = n, first, then, threading.Lock()

    def __call__(self, h):
        with self.lock:
            is_first = not is_probe(h) and self.left > 0
            self.left -= is_first
        (self.first if is_first else self.then)(h)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # clients hang up


server = Server(("127.0.0.1", 0), Handler)
port = server.server_address[1]
base = "http://127.0.0.1:%d" % port
threading.Thread(target=server.serve_forever, daemon=True).start()

# ---- The program ----------------------------------------------------------
home = tempfile.mkdtemp()
models = os.path.join(home, "data", "akunu", "models")
environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "AKUNU_MODEL")) and not k.lower().endswith("_proxy")}
environment.update(XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config", XDG_CACHE_HOME=home + "/cache", HOME=home, HF_ENDPOINT=base, HF_TOKEN=TOKEN, TMPDIR=home)


def run(*arguments, code=0, limit=None, closes_input=False, **variables):
    global last
    log.clear()
    before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else (lambda: os.close(0)) if closes_input else None
    last = subprocess.run([CLI, *arguments], env={**environment, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, preexec_fn=before)
    check("exit code %d, want %d: %s" % (last.returncode, code, " ".join(arguments)), last.returncode == code)
    return last


def says(*words):
    for word in words:
        check("standard error has '%s'" % word, word in last.stderr)


def path(name):
    return os.path.join(models, name)


def content(name):
    try:
        with open(path(name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def has(name, data, what):
    check("%s: the right file" % what, content(name) == data)


def lacks(name, what):
    check("%s: no file" % what, not os.path.lexists(path(name)))


def pull(name, *arguments, **more):
    return run("pull", "%s/some/files/%s" % (base, name), "--retries", "3", *arguments, **more)


def file(name, handler):
    routes["/some/files/" + name] = handler


def asked():
    """Bytes of the ranges that were requested, without probes."""
    total = 0
    for _, headers in log:
        text = headers.get("Range")
        if text and not text.endswith("=0-63"):
            first, end = text.split("=")[1].split("-")
            total += int(end) + 1 - int(first)
    return total


# ---- Ranges ---------------------------------------------------------------
file("big.gguf", lambda h: send(h, BIG))
pull("big.gguf")
has("big.gguf", BIG, "ranges")
check("standard output is the path", last.stdout == path("big.gguf") + "\n")
check("several ranges, and no byte twice", asked() == len(BIG) and len(log) == 4)
check("not from the start again", "again" not in last.stderr)
pull("big.gguf")
check("a second pull asks and downloads nothing", asked() == 0 and len(log) == 1)
says("up to date")
file("big.gguf", lambda h: send(h, OTHER, etag='"v2"'))
pull("big.gguf")
has("big.gguf", OTHER, "a new version replaces the old one")

file("mine.gguf", lambda h: send(h, TINY))
with open(path("mine.gguf"), "wb") as mine:
    mine.write(b"mine")
pull("mine.gguf", code=1)
says("exists, and is not from", "-o NAME")
has("mine.gguf", b"mine", "a file that was not downloaded stays")
pull("mine.gguf", "-o", "yours")
has("yours.gguf", TINY, "-o")
pull("mine.gguf", "-o", "../yours", code=2)
run("pull", base + "/some/files/..%2F..%2Fevil.gguf", code=2)
run("pull", code=2)
run("pull", "user/repo/more", code=2)
says("USER/REPO")

# ---- Faults ---------------------------------------------------------------
file("cut.gguf", Once(3, lambda h: send(h, BIG, cut=1_000_000), lambda h: send(h, BIG)))
pull("cut.gguf")
has("cut.gguf", BIG, "cut connections")
check("what was there is not asked for again", asked() < len(BIG) + 3 * (8 << 20))

file("stall.gguf", Once(1, lambda h: send(h, BIG, cut=500_000, stall=True), lambda h: send(h, BIG)))
pull("stall.gguf", "--stall-timeout", "1")
has("stall.gguf", BIG, "a stall")

file("stalls.gguf", lambda h: send(h, BIG if not is_probe(h) else BIG, cut=None if is_probe(h) else 0))
run("pull", base + "/some/files/stalls.gguf", "--retries", "1", code=1)
lacks("stalls.gguf", "a server that always hangs up")

file("ignores.gguf", lambda h: send(h, BIG, ranges=False))
pull("ignores.gguf")
has("ignores.gguf", BIG, "a server without ranges")
file("short.gguf", Once(1, lambda h: send(h, BIG, ranges=False, cut=2_000_000), lambda h: send(h, BIG, ranges=False)))
pull("short.gguf")
has("short.gguf", BIG, "a short body")
file("lies.gguf", lambda h: send(h, BIG, shift=0 if is_probe(h) else 1))
pull("lies.gguf")
has("lies.gguf", BIG, "a wrong Content-Range")
file("long.gguf", lambda h: send(h, BIG, more=b"" if is_probe(h) or not h.headers.get("Range") else b"x"))
pull("long.gguf")
has("long.gguf", BIG, "a body that is too long")
file("whole.gguf", lambda h: send(h, BIG, ranges=is_probe(h)))
pull("whole.gguf")
has("whole.gguf", BIG, "ranges for the first bytes alone")

file("close.gguf", lambda h: send(h, TINY, ranges=False, length=False))
pull("close.gguf")
has("close.gguf", TINY, "no length, and all tensors are there")
file("closes.gguf", lambda h: send(h, TINY[: len(TINY) * 9 // 10], ranges=False, length=False))
pull("closes.gguf", code=1)
says("how long the file is")
lacks("closes.gguf", "no length, and a cut")

file("page.gguf", lambda h: answer(h, 200, b"<!DOCTYPE html><html>Sign in</html>", Content_Type="text/html"))
pull("page.gguf", code=3)
says("a web page")
lacks("page.gguf", "HTML")
file("page.gguf", lambda h: send(h, TINY))
pull("page.gguf")
has("page.gguf", TINY, "after HTML")
file("pointer.gguf", lambda h: send(h, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"))
pull("pointer.gguf", code=3)
says("Git LFS")
file("empty.gguf", lambda h: answer(h, 200))
pull("empty.gguf", code=3)
lacks("empty.gguf", "an empty file")
pull("absent.gguf", code=3)
says("no such file (404)")

file("busy.gguf", Once(1, lambda h: answer(h, 429, Retry_After="1"), lambda h: send(h, TINY)))
started = time.monotonic()
pull("busy.gguf")
has("busy.gguf", TINY, "429")
check("Retry-After is kept", time.monotonic() - started >= 1.0)
file("later.gguf", lambda h: answer(h, 429, Retry_After="9000"))
pull("later.gguf", code=1)
says("9000 s")
file("down.gguf", Once(2, lambda h: answer(h, 503), lambda h: send(h, BIG)))
pull("down.gguf")
has("down.gguf", BIG, "503, then success")

# ---- A file that changes --------------------------------------------------
file("changes.gguf", Once(1, lambda h: send(h, BIG), lambda h: send(h, BIG) if len(log) < 3 else send(h, OTHER, etag='"v2"')))
pull("changes.gguf", "--connections", "1")
has("changes.gguf", OTHER, "another version in the middle")
says("has changed")


def interrupt(name, after=1.0):
    """Ctrl-C during a download."""
    global last
    process = subprocess.Popen([CLI, "pull", "%s/some/files/%s" % (base, name)], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    last = subprocess.CompletedProcess([], process.returncode, out, err)
    check("Ctrl-C: exit code %d" % process.returncode, process.returncode == 130)
    says("goes on from them")
    lacks(name, "Ctrl-C")


slow = lambda h: send(h, BIG, pace=None if is_probe(h) else 0.02)
file("resumed.gguf", slow)
interrupt("resumed.gguf")
file("resumed.gguf", lambda h: send(h, BIG))
pull("resumed.gguf")
has("resumed.gguf", BIG, "resumed")
check("only the rest is asked for (%d)" % asked(), 0 < asked() < len(BIG) - 1_000_000)
file("restarted.gguf", slow)
interrupt("restarted.gguf")
file("restarted.gguf", lambda h: send(h, OTHER, etag='"v2"'))
pull("restarted.gguf")
has("restarted.gguf", OTHER, "a changed file is not resumed")

# ---- Disk -----------------------------------------------------------------
file("full.gguf", lambda h: send(h, BIG))
pull("full.gguf", code=1, limit=1_000_000)
says("no space")
lacks("full.gguf", "a full disk")
pull("full.gguf")
has("full.gguf", BIG, "after a full disk")

VAST = 3_000_000_000_000_000


def send_vast(h):
    """The first bytes of a file of 3 PB."""
    h.send_response(206)
    h.send_header("Content-Range", "bytes 0-63/%d" % VAST)
    h.send_header("Content-Length", "64")
    h.end_headers()
    h.wfile.write(BIG[:64])


file("vast.gguf", send_vast)
pull("vast.gguf", code=1)
says("not enough space: 3000000000.0 MB are needed, and ")
check("megabytes that are free", float(last.stderr.split("needed, and ")[-1].split(" MB")[0]) < VAST / 1e6)
lacks("vast.gguf", "a file beyond the disk")

# ---- Redirects and secrets ------------------------------------------------
elsewhere = "http://localhost:%d" % port
file("there.gguf", lambda h: answer(h, 302, Location=elsewhere + "/cdn/there.gguf?X-Amz-Signature=Signed"))
routes["/cdn/there.gguf"] = lambda h: send(h, TINY)
pull("there.gguf")
has("there.gguf", TINY, "a redirect")
for where, headers in log:
    mine = headers["Host"].startswith("127.0.0.1")
    check("the token goes to %s: %s" % (headers["Host"], mine), ("Authorization" in headers) == mine)
check("both hosts were asked", {h["Host"].split(":")[0] for _, h in log} == {"127.0.0.1", "localhost"})
file("loop.gguf", lambda h: answer(h, 302, Location=base + "/some/files/loop.gguf"))
pull("loop.gguf", code=1)
says("in circles")
file("local.gguf", lambda h: answer(h, 302, Location="file:///etc/passwd"))
pull("local.gguf", code=1)
says("refused")
lacks("local.gguf", "file:")
routes["/cdn/signed.gguf"] = lambda h: send(h, TINY)
run("pull", elsewhere.replace("//", "//user:Passw0rd@") + "/cdn/signed.gguf?X-Amz-Signature=Signed")
has("signed.gguf", TINY, "a signed URL")
check("no secret is printed", not any(s in last.stderr + last.stdout for s in ("Signed", "Passw0rd", TOKEN)))

# ---- TLS ------------------------------------------------------------------
# Of a certificate for localhost that nobody trusts:
# openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k.pem -out c.pem -days 36500 \
#     -subj /CN=localhost -addext "subjectAltName=DNS:localhost,IP:127.0.0.1"
PEM = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgA+SfXKefGFUp/TVt
2f4ZWzED49F/5kJ956BhtC9JIbahRANCAATOAnnXZPiS/GS8GadCzDqD4/nPe/4c
TRiEs5ERblDpR8Ch8MAfft6WAq8OSmrKRn4DlLrsIMjQOvUa2Nnbq6Yw
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUF8yQd7h7lM6D7jZlGf35nItcy/YwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzIxMTgxNFoYDzIxMjYxMTAz
MjExODE0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATOAnnXZPiS/GS8GadCzDqD4/nPe/4cTRiEs5ERblDpR8Ch8MAfft6W
Aq8OSmrKRn4DlLrsIMjQOvUa2Nnbq6Ywo28wbTAdBgNVHQ4EFgQUwaPny4ixd0yq
Mdl6yO52uP/Flj8wHwYDVR0jBBgwFoAUwaPny4ixd0yqMdl6yO52uP/Flj8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgHzsQMgTMa29bG1L6cx8g1vPmDGDAv4bxWzoy22gDFyQCIQCl
+FH9uDe5rsIVr2NvgdIep3nYJ+ZesXQnL4o9sptvtA==
-----END CERTIFICATE-----
"""
certificate = home + "/localhost.pem"
with open(certificate, "w") as both:
    both.write(PEM)
try:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
except OSError as error:
    print("SKIPPED: TLS, %s" % error)
else:
    secure = Server(("127.0.0.1", 0), Handler)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=secure.serve_forever, daemon=True).start()
    safe = "https://localhost:%d" % secure.server_address[1]
    file("safe.gguf", lambda h: send(h, TINY))
    run("pull", safe + "/some/files/safe.gguf", code=1)
    says("certificate", "SSL_CERT_FILE")
    check("nothing is asked of it", len(log) == 0)
    run("pull", safe + "/some/files/safe.gguf", SSL_CERT_FILE=certificate)
    has("safe.gguf", TINY, "https")
    check("the token is not for another origin", not any("Authorization" in headers for _, headers in log))
    file("less.gguf", lambda h: answer(h, 302, Location=base + "/cdn/there.gguf"))
    run("pull", safe + "/some/files/less.gguf", code=1, SSL_CERT_FILE=certificate)
    says("less safe")
    secure.shutdown()

# ---- Models by URL --------------------------------------------------------
file("used.gguf", lambda h: send(h, TINY))
first = run("tokenize", "-m", base + "/some/files/used.gguf", "--ids", "-p", "once upon").stdout
check("it was downloaded", len(log) > 0)
del routes["/some/files/used.gguf"]
check("the second start is the same", run("tokenize", "-m", base + "/some/files/used.gguf", "--ids", "-p", "once upon").stdout == first)
check("the second start asks nothing", len(log) == 0)
check("so by its name", run("tokenize", "-m", "used", "--ids", "-p", "once upon").stdout == first)
run("tokenize", "-m", base + "/some/files/other.gguf", "--offline", "--ids", "-p", "x", code=3)
check("--offline asks nothing", len(log) == 0)
says("--offline")
long = TINY + bytes(5_000_000)
file("long-tail.gguf", lambda h: send(h, long))
local = json.loads(run("inspect", "-m", "used", "--json").stdout)
remote = json.loads(run("inspect", "-m", base + "/some/files/long-tail.gguf", "--json").stdout)
check("inspect -m URL has the same tensors", remote["tensors"] == local["tensors"] and remote["metadata"] == local["metadata"])
check("and reads a part of the file", asked() <= 1 << 20)
says("of %.2f MB" % (len(long) / 1e6))
lacks("long-tail.gguf", "inspect")
check("and leaves nothing behind", not glob.glob(home + "/akunu-*"))

for what, header in (("counts", (2**63, 2**63)), ("a key", (0, 1, 2**62)), ("nothing", ())):
    hostile = b"GGUF" + (3).to_bytes(4, "little") + b"".join(n.to_bytes(8, "little") for n in header)
    file("hostile.gguf", lambda h: send(h, hostile + bytes(3_000_000 if header else 0)))
    run("inspect", "-m", base + "/some/files/hostile.gguf", code=3)
    check("a header with damaged %s: a message" % what, "header" in last.stderr and not last.stdout)

# An array of 2^41 bytes, and one of 2^62 numbers of 8 bytes, whose size has no number of 64 bits.
for element, n in (0, 2**41), (10, 2**62):
    array = b"GGUF" + (3).to_bytes(4, "little") + b"".join(n.to_bytes(8, "little") for n in (0, 1, 1)) + b"a" + (9).to_bytes(4, "little") + element.to_bytes(4, "little") + n.to_bytes(8, "little")
    file("hostile.gguf", lambda h: send(h, array + bytes(3_000_000)))
    run("inspect", "-m", base + "/some/files/hostile.gguf", code=3)
    says("its header is damaged")

# ---- Repositories ---------------------------------------------------------
def repository(name, revision="main", wrong=(), **files):
    entries = [{"type": "directory", "path": "folder", "oid": "0", "size": 0}, {"type": "file", "path": "../evil.gguf", "oid": "0", "size": 9}, {"type": "file", "path": "\33[2J/evil.gguf", "oid": "0", "size": 9}]
    for at, data in files.items():
        at = at.replace("__", "/")
        entry = {"type": "file", "path": at, "oid": hashlib.sha1(data).hexdigest(), "size": len(data)}
        if len(data) > 1000:
            entry["lfs"] = {"oid": hashlib.sha256(b"other" if at in wrong else data).hexdigest(), "size": len(data)}
        entries.append(entry)
        routes["/%s/resolve/%s/%s" % (name, revision, at)] = lambda h, data=data: send(h, data, etag='"%s"' % hashlib.sha1(data).hexdigest())
    half = len(entries) // 2
    tree = "/api/models/%s/tree/%s" % (name, revision)

    def list_files(h):
        if "cursor" in h.path:
            return answer(h, 200, json.dumps(entries[half:]).encode())
        answer(h, 200, json.dumps(entries[:half]).encode(), Link='<%s%s?recursive=true&cursor=x>; rel="next"' % (base, tree))

    routes[tree] = list_files


def ids_of(*arguments, **more):
    return run("tokenize", *arguments, "--ids", "-p", "once upon", **more).stdout


repository("me/tiny-GGUF", **{"Tiny-BF16.gguf": TINY, "Tiny-Q4_K_M.gguf": TINY + b"4", "Tiny-Q8_0.gguf": TINY + b"8", "README.md": b"# Tiny", "mmproj-Tiny-Q4_K_M.gguf": TINY})
check("-hf", ids_of("-hf", "me/tiny-GGUF") == first)
has("Tiny-Q4_K_M.gguf", TINY + b"4", "Q4_K_M by default")
check("the token goes to its host", all(h.get("Authorization") == "Bearer " + TOKEN for _, h in log))
check("-hf again", ids_of("-hf", "me/tiny-GGUF") == first and len(log) == 0)
ids_of("-hf", "me/tiny-GGUF:q8_0")
has("Tiny-Q8_0.gguf", TINY + b"8", "a type, in any case")
ids_of("-hf", "me/tiny-GGUF", "-hff", "Tiny-BF16.gguf")
has("Tiny-BF16.gguf", TINY, "a file")
run("pull", base + "/me/tiny-GGUF/")
check("a page of the host is its repository", last.stdout == path("Tiny-Q4_K_M.gguf") + "\n")
check("a URL of the host is the same file", ids_of("-m", base + "/me/tiny-GGUF/blob/main/Tiny-BF16.gguf") == first and len(log) == 0)
check("so is the one that its page offers", ids_of("-m", base + "/me/tiny-GGUF/resolve/main/Tiny-BF16.gguf?download=true") == first and len(log) == 0)
ids_of("-hf", "me/tiny-GGUF:Q5_K_M", code=3)
says("Q5_K_M", "Tiny-Q8_0.gguf")
check("no name that is a path or has control characters", "evil" not in last.stderr)
ids_of("-hf", "me/tiny-GGUF:Tiny-Q8_O.gguf", code=3)
says("did you mean Tiny-Q8_0.gguf?")
run("run", "-hf", "me/tiny-GGUF", "-m", "x", "-p", "x", code=2)
says("only one of them")
check("the models are listed", all(w in run("list").stdout for w in ("Tiny-Q4_K_M", "used")))

repository("me/wrong", wrong=("Tiny.gguf",), **{"Tiny.gguf": TINY})
run("pull", "me/wrong", "-o", "wrong", code=1)
says("SHA-256", "it is removed")
lacks("wrong.gguf", "a wrong hash")
check("nor a part of it", not glob.glob(models + "/.pull/wrong*part*"))
repository("me/wrong", **{"Tiny.gguf": TINY})
run("pull", "me/wrong", "-o", "wrong")
has("wrong.gguf", TINY, "after a wrong hash")

parts = {"big__big-Q4_0-0000%d-of-00003.gguf" % i: b"GGUF" + bytes([i]) * 3000 for i in (1, 2, 3)}
repository("me/split", **parts)
run("pull", "me/split")
for name, data in parts.items():
    has(name.split("__")[1], data, "a split file")
check("its first part came last", [p for p, _ in log if "resolve" in p][-1].endswith("00001-of-00003.gguf"))
del parts["big__big-Q4_0-00002-of-00003.gguf"]
repository("me/hole", **parts)
run("pull", "me/hole", code=3)
says("00002-of-00003")

weights = (2).to_bytes(8, "little") + b"{}" + bytes(2000)
repository("me/safe", "v1", **{"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}", "model.safetensors": weights, "consolidated.safetensors": weights, "1_Pooling__config.json": b"{}", "pytorch_model.bin": b"x" * 2000})
run("pull", "me/safe@v1")
has("safe/model.safetensors", weights, "a folder")
has("safe/1_Pooling/config.json", b"{}", "a folder")
lacks("safe/pytorch_model.bin", "what is not read")
lacks("safe/consolidated.safetensors", "the same weights twice")
check("no staging folder is left", not os.path.exists(models + "/.pull/safe.folder"))
repository("me/safe", "v1", **{"config.json": b'{"model_type": "gemma"}', "tokenizer.json": b"{}", "model.safetensors": weights})
run("pull", "me/safe@v1")
has("safe/config.json", b'{"model_type": "gemma"}', "a changed file of a folder")
check("nothing else is asked for", sum("resolve" in p and not p.endswith("config.json") for p, _ in log) == 0)
routes["/me/safe/resolve/v1/config.json"] = lambda h: answer(h, 500)
repository("me/none", **{"README.md": b"# None"})
run("pull", "me/none", code=3)
says("neither a GGUF file nor SafeTensors", "README.md")
run("pull", "me/absent", code=3)
routes["/api/models/me/gated/tree/main"] = lambda h: answer(h, 403 if "Authorization" in h.headers else 401, b"{}", X_Error_Code="GatedRepo")
run("pull", "me/gated", code=3)
says("gated", "terms")
run("pull", "me/gated", code=3, HF_TOKEN="")
says("HF_TOKEN")
os.makedirs(home + "/hub")
with open(home + "/hub/token", "w") as kept:
    kept.write("hf_FromFile\n")
run("pull", "me/gated", code=3, HF_TOKEN="", HF_HOME=home + "/hub")
check("the token of the file", log[0][1].get("Authorization") == "Bearer hf_FromFile")
run("pull", "me/gated", code=3, closes_input=True, HF_TOKEN="", HF_HOME=home + "/hub")
check("the token of the file, with standard input closed", log[0][1].get("Authorization") == "Bearer hf_FromFile")
run("pull", "me/gated", code=2, HF_TOKEN="a\r\nX: y")
check("no header is smuggled", len(log) == 0)
run("pull", "me/tiny-GGUF", code=1, HF_ENDPOINT="http://127.0.0.1:1")

# ---- What is left ---------------------------------------------------------
for name in glob.glob(models + "/.pull/**", recursive=True):
    if os.path.isfile(name):
        with open(name, "rb") as kept:
            text = kept.read()
        check("no secret in %s" % name, not any(s in text for s in (b"Signed", b"Passw0rd", TOKEN.encode())))
shutil.rmtree(home)
server.shutdown()
print("pull: %d of %d checks passed" % (checks - failures, checks))
raise SystemExit(failures > 0)
