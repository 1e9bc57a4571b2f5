#!/usr/bin/env python3
"""Opens a page of `headtime report` in headless Chromium: it renders, prints no error, and hover, zoom and theme work.

    tests/report.py [PAGE.html]     without a page, one is made with HEADTIME (target/release/headtime)

Ends with 77 if Chromium or its driver (chromium, chromium-driver) is missing. SCREENSHOTS names a folder for a picture of each theme.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

KEY = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"
        options = {
            "binary": shutil.which("chromium"),
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
                "--disable-component-update", "--window-size=1100,1600",
            ],
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = self.call("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def call(self, path, body=None, method="POST"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def of(self, path, body=None, method="POST"):
        return self.call(f"/session/{self.session}{path}", body, method)

    def run(self, script):
        return self.of("/execute/sync", {"script": script, "args": []})

    def drag(self, element, steps):
        moves = [{"type": "pointerMove", "duration": 50, "origin": {KEY: element}, "x": x, "y": 0} for x in steps]
        if len(moves) > 1:
            moves[1:1] = [{"type": "pointerDown", "button": 0}]
            moves.append({"type": "pointerUp", "button": 0})
        self.of("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": moves}]})


def page():
    headtime = os.environ.get("HEADTIME", "target/release/headtime")
    path = os.path.join(tempfile.mkdtemp(), "report.html")
    drawn = ["report", "--like", "vm+scrub", "--profile", "exos-x18", "--seeds", "1", "--set", "run.duration=15s",
             "--set", "run.warm_up=2s", "-o", path]
    subprocess.run([headtime, *drawn], check=True, stdout=subprocess.DEVNULL)
    return path


def check(browser, path):
    browser.of("/url", {"url": "file://" + os.path.abspath(path)})
    time.sleep(1)
    roles = browser.run("return JSON.parse(document.getElementById('curves').textContent).roles.length")
    charts = browser.run("return document.querySelectorAll('.chart .u-over').length")
    assert charts == roles > 0, f"{charts} charts of {roles} roles"
    painted = browser.run(
        "const c = document.querySelector('.chart canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "return d.filter((v, i) => i % 4 === 3 && v > 0).length"
    )
    assert painted > 1000, f"{painted} points painted"
    wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than the window"
    over = browser.of("/element", {"using": "css selector", "value": ".chart .u-over"})[KEY]
    browser.run("document.querySelector('.chart').scrollIntoView({block: 'center'})")
    values = "return [...document.querySelectorAll('.chart .u-value')].map(value => value.textContent).join(' ')"
    assert "%" not in browser.run(values), "the legend has values before the mouse comes"
    browser.drag(over, [40])
    legend = browser.run(values)
    assert "%" in legend and "s" in legend, f"hover shows no values: {legend}"
    before = browser.of("/element/" + over + "/screenshot", method="GET")
    browser.drag(over, [-100, 100])
    time.sleep(0.3)
    assert browser.of("/element/" + over + "/screenshot", method="GET") != before, "dragging does not zoom"
    folder = os.environ.get("SCREENSHOTS")
    backgrounds = []
    for theme in ["first", "second"]:
        backgrounds.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
        if folder:
            with open(os.path.join(folder, theme + ".png"), "wb") as file:
                file.write(base64.b64decode(browser.of("/screenshot", method="GET")))
        browser.run("document.getElementById('theme').click()")
    assert backgrounds[0] != backgrounds[1], "the theme does not change"
    errors = [line for line in browser.of("/se/log", {"type": "browser"}) if line["level"] in ("SEVERE", "WARNING")]
    assert not errors, errors
    print(f"{path}: {charts} charts, hover, zoom and theme work, no error")


def main():
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("SKIPPED: chromium or chromedriver is missing", file=sys.stderr)
        sys.exit(77)
    port = 9515 + os.getpid() % 1000
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        path = sys.argv[1] if len(sys.argv) > 1 else page()
        for _ in range(100):
            try:
                browser = Browser(port)
                break
            except OSError:
                time.sleep(0.1)
        check(browser, path)
        browser.of("", method="DELETE")
    finally:
        driver.terminate()
        driver.wait()


main()
