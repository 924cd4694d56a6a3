"""Drives the chat page of akunu-server in headless chromium, over its debugging protocol: a
conversation, stop, edit, hostile text, reload, themes and a small screen.

usage: page.py AKUNU-SERVER MODEL [FOLDER-FOR-SCREENSHOTS]
"""
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 60 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)
HOSTILE = "<img src=x onerror=\"window.bad=1\"> [a](javascript:bad) [b](https://example.com) **c** `<d>`\n# e\n```html\n<script>window.bad=1</script>\n```\n1. f\n2. g\n> h"


class WebSocket:
    """As much of RFC 6455 as a client of one server on this machine needs."""

    def __init__(self, url):
        host, port, path = re.match(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        head = bytes([0x81]) + (bytes([0x80 | n]) if n < 126 else bytes([0x80 | 126]) + n.to_bytes(2, "big") if n < 65536 else bytes([0x80 | 127]) + n.to_bytes(8, "big"))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, n = self.file.read(2)
            n &= 0x7F
            n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big") if n > 125 else n
            text += self.file.read(n)
            if first & 0x80:
                return text.decode()


class Page:
    def __init__(self, url):
        self.socket, self.n, self.errors = WebSocket(url), 0, []

    def do(self, method, **params):
        self.n += 1
        self.socket.send(json.dumps({"id": self.n, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(answer["params"]["exceptionDetails"]["text"])
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.errors.append(answer["params"]["entry"]["text"])
            if answer.get("id") == self.n:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def js(self, text):
        answer = self.do("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (text, answer)
        return answer["result"].get("value")

    def wait(self, text):
        began = time.monotonic()
        while not self.js(text):
            assert time.monotonic() - began < PATIENCE, f"never: {text}"
            time.sleep(0.05)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text="\r" if key == "Enter" and kind == "keyDown" else "")


def settings(page, **values):
    page.js("document.getElementById('open-settings').click()")
    for name, value in values.items():
        page.js(f"document.getElementById('{name}').value = '{value}'")
    page.js("document.getElementById('close-settings').click()")
    for name, value in values.items():  # kept by an event that comes later
        page.wait(f"JSON.parse(localStorage['akunu-settings'] ?? '{{}}').{name} == '{value}'")


def drive(page, url, shots):
    def shot(name):
        if shots:
            with open(os.path.join(shots, name + ".png"), "wb") as f:
                f.write(base64.b64decode(page.do("Page.captureScreenshot")["data"]))

    articles = "document.querySelectorAll('article').length"
    idle = "document.getElementById('stop').classList.contains('hidden')"
    answer = "document.querySelector('article.assistant .body').innerText"
    for domain in ("Page", "Runtime", "Log", "Accessibility"):
        page.do(domain + ".enable")
    page.do("Page.navigate", url=url)
    page.wait("document.activeElement?.id == 'text'")
    page.wait("document.title != 'akunu'")

    assert page.js("[...document.getElementById('model').options].map(o => o.textContent)") == ["model.gguf", "other"]
    page.js("document.getElementById('model').value = 'other'; document.getElementById('model').onchange()")
    settings(page, temperature=0, max_tokens=20)
    page.do("Input.insertText", text="Hi **you**")
    page.press("Enter", 13)
    page.wait(articles + " == 2 && " + idle)
    assert page.js("document.querySelector('article.user strong').textContent") == "you"
    first = page.js(answer)
    assert first, "the answer is empty"
    page.js("[...document.querySelectorAll('article.assistant button')].find(b => b.textContent == 'Regenerate').click()")
    page.wait(idle)
    again = page.js(answer)
    assert again == first, f"at temperature 0 an answer that is made again is another: {first!r}, {again!r}"
    shot("light")

    settings(page, max_tokens=100000)
    page.js("document.getElementById('text').value = 'And on?'; document.getElementById('form').requestSubmit()")
    page.wait("!" + idle + " || document.querySelectorAll('article')[3]?.querySelector('.body').innerText.length > 0")
    page.press("Escape", 27)
    page.wait(idle)
    page.js("[...document.querySelectorAll('article.user')][1].querySelectorAll('button')[1].click()")
    assert page.js("document.getElementById('text').value") == "And on?" and page.js(articles) == 2

    page.js(f"(() => {{ const c = JSON.parse(localStorage['akunu-chats']); c[0].messages.push({{role: 'user', content: {json.dumps(HOSTILE)}}}, "
            f"{{role: 'assistant', content: {json.dumps(HOSTILE)}}}); localStorage['akunu-chats'] = JSON.stringify(c); }})()")
    page.do("Page.reload")
    page.wait(articles + " == 4")
    assert page.js("window.bad") is None, "text of a model ran"
    assert page.js("document.querySelectorAll('article img, article script').length") == 0
    assert page.js("[...document.querySelectorAll('article a')].map(a => a.href)") == ["https://example.com/"] * 2
    for selector in ("h3", "pre code", "ol li", "blockquote", "strong", "p code"):
        assert page.js(f"document.querySelectorAll('article.assistant {selector}').length") > 0, selector

    page.js("document.getElementById('theme').click()")
    assert page.js("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    shot("dark")
    page.do("Emulation.setDeviceMetricsOverride", width=390, height=700, deviceScaleFactor=2, mobile=True)
    page.wait("getComputedStyle(document.getElementById('list')).display == 'none'")
    assert page.js("document.documentElement.scrollWidth") <= 390, "the page is wider than a small screen"
    shot("small")
    page.js("document.getElementById('menu').click()")
    assert page.js("getComputedStyle(document.getElementById('list')).display") == "block"
    unnamed = [node for node in page.do("Accessibility.getFullAXTree")["nodes"]
               if not node.get("ignored") and node.get("role", {}).get("value") in ("button", "combobox", "textbox", "spinbutton") and not node.get("name", {}).get("value")]
    assert not unnamed, unnamed
    assert not page.errors, page.errors


def main():
    server_path, model = sys.argv[1:3]
    chromium = shutil.which("chromium")
    if not chromium:
        print("SKIPPED: the chat page, no chromium")
        return 77
    folder = tempfile.mkdtemp()
    presets = os.path.join(folder, "presets.yaml")
    with open(presets, "w") as f:
        json.dump({"models": {"other": {"model": model}}}, f)  # YAML, too
    server = subprocess.Popen([server_path, "-m", model, "--config", presets, "--port", "0", "-c", "4096"], stderr=subprocess.PIPE, text=True)
    browser = None
    try:
        url = re.search(r"http://\S+", server.stderr.readline() or server.stderr.readline()).group() + "/"
        browser = subprocess.Popen([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--user-data-dir=" + folder, "--window-size=1200,800", "about:blank"],
                                   stderr=subprocess.DEVNULL)
        began, port_file = time.monotonic(), os.path.join(folder, "DevToolsActivePort")
        while not os.path.exists(port_file) or not open(port_file).read().strip():
            assert time.monotonic() - began < PATIENCE, "chromium does not start"
            time.sleep(0.1)
        port = open(port_file).read().split()[0]
        pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
        drive(Page(next(p for p in pages if p["type"] == "page")["webSocketDebuggerUrl"]), url, sys.argv[3] if len(sys.argv) > 3 else None)
        print("page: passed")
    finally:
        if browser:
            browser.kill()
            browser.wait()
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
