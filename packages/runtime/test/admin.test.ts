import { Counter, Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { startAdminServer, type AdminServer, type PostRequest, type Readiness } from '../src/index.ts'

let state: () => Readiness
let server: AdminServer
let base: string

beforeEach(async () => {
  state = () => ({ ready: true, reasons: [] })
  const registry = new Registry()
  new Counter({ name: 'keyward_test_total', help: 'A counter of this test.', registers: [registry] }).inc(3)
  const posts = {
    '/echo': (request: PostRequest) => Promise.resolve({ status: 202, body: request }),
    '/broken': () => Promise.reject(new Error('internal detail')),
  }
  server = await startAdminServer({ port: 0, isReady: () => state(), version: '9.8.7', registry, posts })
  base = `http://127.0.0.1:${server.port}`
})

afterEach(() => server.close())

test('/livez returns 200 while the program runs', async () => {
  const response = await fetch(`${base}/livez`)
  expect(response.status).toBe(200)
  expect(await response.json()).toEqual({ live: true })
})

test('/readyz returns 200 or 503 with the reasons', async () => {
  expect(await (await fetch(`${base}/readyz`)).json()).toEqual({ ready: true, reasons: [], version: '9.8.7' })
  state = () => ({ ready: false, reasons: ['The index is being loaded.'] })
  const response = await fetch(`${base}/readyz?probe=1`)
  expect(response.status).toBe(503)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.json()).toEqual({ ready: false, reasons: ['The index is being loaded.'], version: '9.8.7' })
})

test('/readyz returns 503 when the readiness cannot be determined', async () => {
  state = () => {
    throw new Error('internal detail')
  }
  const response = await fetch(`${base}/readyz`)
  expect(response.status).toBe(503)
  expect(await response.text()).not.toContain('internal detail')
})

test('/metrics contains the metrics of the program, of the event loop and of garbage collection', async () => {
  const response = await fetch(`${base}/metrics`)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  const body = await response.text()
  expect(body).toContain('keyward_test_total 3')
  expect(body).toContain('keyward_ready 1')
  expect(body).toContain(`keyward_build_info{version="9.8.7",node="${process.versions.node}"} 1`)
  expect(body).toContain('nodejs_eventloop_lag_p99_seconds')
  expect(body).toContain('# TYPE nodejs_gc_duration_seconds histogram')
})

test('/metrics contains the readiness that /readyz returns', async () => {
  state = () => ({ ready: false, reasons: ['The index is being loaded.'] })
  expect(await (await fetch(`${base}/metrics`)).text()).toContain('keyward_ready 0')
})

test('returns the headers of GET without a body for HEAD', async () => {
  const response = await fetch(`${base}/readyz`, { method: 'HEAD' })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-length')).toBe('45')
  expect(await response.text()).toBe('')
})

test('returns 405 with Allow for other methods, and 404 for unknown paths', async () => {
  const post = await fetch(`${base}/livez`, { method: 'POST' })
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  for (const path of ['/', '/livez/', '/__proto__', '/toString']) {
    expect((await fetch(base + path)).status, path).toBe(404)
  }
})

test('runs the handler of a POST with the parsed body', async () => {
  const post = async (path: string, body: string) => {
    const response = await fetch(base + path, { method: 'POST', body, headers: { authorization: 'Bearer x' } })
    return { status: response.status, text: await response.text() }
  }
  expect(await post('/echo', '{"a":[1]}')).toEqual({
    status: 202,
    text: '{"authorization":"Bearer x","body":{"a":[1]}}',
  })
  expect(await post('/echo', '{')).toEqual({ status: 202, text: '{"authorization":"Bearer x"}' })
  expect((await post('/echo', 'x'.repeat(300_000))).status).toBe(413)
  expect(await post('/broken', '{}')).toEqual({ status: 500, text: '{"error":"The request failed."}' })
  const wrong = await fetch(`${base}/echo`)
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
})

test('rejects when the port is taken', async () => {
  const again = startAdminServer({
    port: server.port,
    isReady: () => state(),
    version: '9.8.7',
    registry: new Registry(),
  })
  await expect(again).rejects.toMatchObject({ code: 'EADDRINUSE' })
})
