"""Sends checks with http.client, requests, aiohttp and httpx. A library that is not installed is left out."""

import asyncio
import gzip
import http.client
import json
import sys
import time
import urllib.parse

api_key, license_key, idle, *paths = sys.argv[1:]
idle = int(idle)
body = json.dumps({"license": license_key}).encode()
headers = {"Authorization": "Bearer " + api_key, "Content-Type": "application/json; charset=utf-8"}
encoded = {**headers, "Content-Encoding": "gzip"}
expecting = {**headers, "Expect": "100-continue"}
BOM = b"\xef\xbb\xbf" + body
LARGE = body.ljust(1_100_000)


def pieces():
    yield body[:5]
    yield body[5:]


def run(client, path, cases):
    for name, send in cases.items():
        try:
            result = send()
        except Exception as error:  # The table contains the error that an app would get.
            result = f"error: {type(error).__name__}: {error}"
        print(client, path, name, result, sep="\t", flush=True)


def with_http_client(path, url):
    parts = urllib.parse.urlsplit(url)

    def post(data, given=headers, connection=None, version=11, **options):
        connection = connection or http.client.HTTPConnection(parts.netloc)
        if version == 10:
            connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"
        connection.request("POST", parts.path, data, given, **options)
        response = connection.getresponse()
        response.read()
        return response.status

    def twice(seconds):
        connection = http.client.HTTPConnection(parts.netloc)
        post(body, connection=connection)
        time.sleep(seconds)
        return post(body, connection=connection)

    chunked = {**headers, "Transfer-Encoding": "chunked"}
    cases = {
        "length": lambda: post(body),
        "chunked": lambda: post(pieces(), chunked, encode_chunked=True),
        "expect": lambda: post(body, expecting),
        "reuse": lambda: twice(0),
        "http10": lambda: post(body, version=10),
        "gzip": lambda: post(gzip.compress(body), encoded),
        "bom": lambda: post(BOM),
        "large": lambda: post(LARGE),
    }
    if idle:
        cases["idle"] = lambda: twice(idle)
    run("Python http.client", path, cases)


def with_session(client, path, make, post):
    def twice(seconds):
        with make() as session:
            post(session, body, headers)
            time.sleep(seconds)
            return post(session, body, headers)

    def once(data, given=headers):
        with make() as session:
            return post(session, data, given)

    cases = {
        "length": lambda: once(body),
        "chunked": lambda: once(pieces()),
        "expect": lambda: once(body, expecting),
        "reuse": lambda: twice(0),
        "gzip": lambda: once(gzip.compress(body), encoded),
        "bom": lambda: once(BOM),
        "large": lambda: once(LARGE),
    }
    if idle:
        cases["idle"] = lambda: twice(idle)
    run(client, path, cases)


def with_aiohttp(aiohttp, path, url):
    async def post(session, data, **options):
        async with session.post(url, data=data, headers=headers, **options) as response:
            await response.read()
            return response.status

    async def requests_of(datas, seconds=0, session_options={}, **options):
        async with aiohttp.ClientSession(**session_options) as session:
            for number, data in enumerate(datas):
                if number:
                    await asyncio.sleep(seconds)
                status = await post(session, data, **options)
            return status

    async def parts():
        for piece in pieces():
            yield piece

    def of(*datas, **options):
        return lambda: asyncio.run(requests_of(datas, **options))

    cases = {
        "length": of(body),
        "chunked": lambda: asyncio.run(requests_of([parts()])),
        "expect": of(body, expect100=True),
        "reuse": of(body, body),
        "http10": of(body, session_options={"version": aiohttp.HttpVersion10}),
        "gzip": of(body, compress="gzip"),
        "bom": of(BOM),
        "large": of(LARGE),
    }
    if idle:
        cases["idle"] = of(body, body, seconds=idle)
    run("Python aiohttp", path, cases)


for path, url in (one.split("=", 1) for one in paths):
    with_http_client(path, url)
    try:
        import requests

        with_session(
            "Python requests",
            path,
            requests.Session,
            lambda session, data, given: session.post(url, data=data, headers=given).status_code,
        )
    except ImportError:
        pass
    try:
        import httpx

        with_session(
            "Python httpx",
            path,
            httpx.Client,
            lambda session, data, given: session.post(url, content=data, headers=given).status_code,
        )
    except ImportError:
        pass
    try:
        import aiohttp

        with_aiohttp(aiohttp, path, url)
    except ImportError:
        pass
