import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Balancer, type BalancerPorts, Haproxy, isInstalled } from '../cluster/balancer.ts'
import { freePort } from '../shared/ports.ts'
import { VALIDATION_PATHS } from '../start/gateway.ts'
import { INFRA } from './manifests.ts'
import { Nginx } from './nginx.ts'
import { SIGNATURE, Upstream } from './upstream.ts'

interface HttpResponse {
  status: number
  type: string
  body: string
  signature: unknown
}

const hasOpenssl = isInstalled('openssl', 'version')
const cases = [
  {
    name: 'haproxy',
    configuration: 'haproxy/haproxy.cfg',
    make: () => new Haproxy(),
    isAvailable: hasOpenssl && isInstalled('haproxy', '-v'),
    listen: (conf: string, ports: BalancerPorts) =>
      conf
        .replace('bind :443', `bind 127.0.0.1:${ports.https}`)
        .replace('bind :80', `bind 127.0.0.1:${ports.http}`)
        .replace('bind :8404', `bind 127.0.0.1:${ports.metrics}`)
        // The simulated services respond late on a busy machine, which must not count as a failure.
        .replaceAll('fall 2', 'fall 8'),
    checksReadiness: true,
    chunkedFraming: { 'transfer-encoding': 'chunked' },
  },
  {
    name: 'nginx',
    configuration: 'nginx/nginx.conf',
    make: () => new Nginx(),
    isAvailable: hasOpenssl && isInstalled('nginx', '-v'),
    listen: (conf: string, ports: BalancerPorts) =>
      conf
        .replace('listen 443', `listen 127.0.0.1:${ports.https}`)
        .replace('listen 80', `listen 127.0.0.1:${ports.http}`),
    checksReadiness: false,
    chunkedFraming: { 'content-length': '15' },
  },
]

for (const { name, configuration, make, isAvailable, listen, checksReadiness, chunkedFraming } of cases) {
  describe.skipIf(!isAvailable)(`${name} (needs ${name} and openssl)`, { timeout: 30_000 }, () => {
    let balancer: Balancer
    let ports: BalancerPorts
    let validators: Upstream[]
    let managements: Upstream[]
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })

    async function send(path: string, options: RequestOptions & { body?: string } = {}): Promise<HttpResponse> {
      const { body, ...rest } = options
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port: ports.https, path, agent, ...rest }, resolve)
        sent.on('error', reject).end(body)
      })
      const { statusCode: status = 0, headers } = response
      return {
        status,
        type: headers['content-type'] ?? '',
        body: await text(response),
        signature: headers['keyward-signature'],
      }
    }

    /** Sends bytes and returns the whole response. */
    async function sendRaw(bytes: string): Promise<string> {
      const socket = connectTls({ host: '127.0.0.1', port: ports.https, rejectUnauthorized: false })
      socket.write(bytes)
      return text(socket)
    }

    /** Sends a request over HTTP/2 without a content-length. Returns the status, or 0 if the stream is reset. */
    async function sendOverHttp2(path: string, body: string): Promise<number> {
      const session = connectHttp2(`https://127.0.0.1:${ports.https}`, { rejectUnauthorized: false })
      // Ignores the error, because the stream reports it too.
      session.on('error', () => undefined)
      try {
        const stream = session.request({ ':method': 'POST', ':path': path })
        return await new Promise((resolve) => {
          let status = 0
          stream.on('response', (headers) => (status = headers[':status'] ?? 0))
          stream.on('end', () => resolve(status)).on('error', () => resolve(0))
          stream.resume()
          stream.end(body)
        })
      } finally {
        session.close()
      }
    }

    /** Sends requests until a service of `names` responds. Returns whether one responded within 10 s. */
    async function comesFrom(path: string, names: string[]): Promise<boolean> {
      for (let attempt = 0; attempt < 400; attempt++) {
        const { body } = await send(path)
        if (names.some((one) => body.includes(`"${one}"`))) return true
        await sleep(25)
      }
      return false
    }

    /** Replaces the address of each service, such as `validator-2:8080 port 9080`, with the address of a simulated service. */
    function place(conf: string): string {
      return conf.replaceAll(
        /(validator|management)-(\d):\d+(?: port \d+)?/g,
        (found, kind: string, number: string) => {
          const upstream = (kind === 'validator' ? validators : managements)[Number(number) - 1]
          const admin = found.includes('port') ? ` port ${new URL(upstream?.adminUrl ?? '').port}` : ''
          return `${new URL(upstream?.url ?? '').host}${admin}`
        },
      )
    }

    beforeAll(async () => {
      validators = await Promise.all(['v1', 'v2', 'v3'].map((one) => new Upstream(one).listen()))
      managements = await Promise.all(['m1', 'm2'].map((one) => new Upstream(one).listen()))
      ports = { https: await freePort(), http: await freePort(), metrics: await freePort() }
      balancer = make()
      await balancer.start(configuration, ports, (conf) => listen(place(conf), ports))
    }, 240_000)

    afterAll(async () => {
      agent.destroy()
      await balancer.stop()
      for (const upstream of [...validators, ...managements]) upstream.close()
    })

    beforeEach(() => {
      for (const upstream of [...validators, ...managements]) upstream.seen.length = 0
    })

    test('the balancer does not start when its port is taken', async () => {
      const another = make()
      const taken = {
        https: Number(new URL(validators[0]?.url ?? '').port),
        http: await freePort(),
        metrics: await freePort(),
      }
      await expect(another.start(configuration, taken, (conf) => listen(place(conf), taken))).rejects.toThrow(
        `Port ${taken.https} is taken by another program`,
      )
      await another.stop()
    })

    test('routes the validation paths to the validators and all other paths to management', async () => {
      for (const path of VALIDATION_PATHS) expect((await send(`${path}?x=1`)).body, path).toMatch(/"v[123]"/)
      for (const path of ['/', '/docs', '/api/v1/validate/', '/api/v1/validators', '/api/v1/licenses'])
        expect((await send(path)).body, path).toMatch(/"m[12]"/)
    })

    test('forwards verdicts unchanged', async () => {
      const response = await send('/api/v2/license/validate', { method: 'POST', body: '{"license":"x"}' })
      expect(response).toMatchObject({ status: 400, type: 'application/json', signature: SIGNATURE })
      const [seen] = validators.flatMap((one) => one.seen)
      expect(seen?.body.toString()).toBe('{"license":"x"}')
    })

    test('forwards a check with a chunked body or a content-length', async () => {
      const headers = { 'transfer-encoding': 'chunked' }
      const response = await send('/api/v2/license/validate', { method: 'POST', body: '{"license":"x"}', headers })
      expect(response).toMatchObject({ status: 400, type: 'application/json' })
      expect(await sendOverHttp2('/api/v2/license/validate', '{"license":"x"}')).toBe(400)
      const seen = validators.flatMap((one) => one.seen)
      expect(seen.map((one) => one.body.toString())).toEqual(['{"license":"x"}', '{"license":"x"}'])
      for (const one of seen) expect(one.headers).toMatchObject(chunkedFraming)
      const managed = await send('/api/v1/products', { method: 'POST', body: '{}', headers })
      expect(managed.body).toMatch(/"m[12]"/)
    })

    test('forwards a check in HTTP/1.0 as HTTP/1.1, with the address of the caller', async () => {
      const body = '{"license":"x"}'
      const framing = `content-length: ${body.length}\r\nx-forwarded-for: 203.0.113.7`
      for (const host of ['', 'host: localhost\r\n'])
        expect(await sendRaw(`POST /api/v2/license/validate HTTP/1.0\r\n${host}${framing}\r\n\r\n${body}`)).toMatch(
          /^HTTP\/1\.1 400 [^]*"v[123]"/,
        )
      const seen = validators.flatMap((one) => one.seen)
      expect(seen.map((one) => [one.body.toString(), one.version])).toEqual([
        [body, '1.1'],
        [body, '1.1'],
      ])
      for (const { headers } of seen) {
        expect(headers['host']).toBeTruthy()
        expect(headers['x-forwarded-for']).toBe('127.0.0.1')
      }
    })

    test('returns JSON when a validator rejects large headers', async () => {
      const response = await send('/api/v1/validate', { headers: { 'x-large': 'yes' } })
      expect(response).toMatchObject({ status: 431, type: 'application/problem+json' })
      expect(JSON.parse(response.body)).toMatchObject({ status: 431, code: 'BAD_REQUEST' })
    })

    test.skipIf(name !== 'nginx')('returns JSON when the balancer itself rejects a request', async () => {
      const head = 'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\nconnection: close\r\n'
      for (const [status, bytes] of [
        [400, 'GET /api/v1/validate HTTP/3.0\r\nhost: x\r\n\r\n'],
        [405, 'TRACE /api/v1/validate HTTP/1.1\r\nhost: x\r\n\r\n'],
        [431, `${head}x-large: ${'a'.repeat(20_000)}\r\n\r\n`],
        [431, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`],
      ] as const) {
        const [headers = '', body = ''] = (await sendRaw(bytes)).split('\r\n\r\n')
        expect(headers, bytes.slice(0, 99)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json`))
        expect(JSON.parse(body)).toMatchObject({ status, code: status === 405 ? 'METHOD_NOT_ALLOWED' : 'BAD_REQUEST' })
      }
    })

    test("overwrites x-forwarded-for with the caller's address", async () => {
      const headers = {
        'x-forwarded-for': '203.0.113.7, 10.0.0.1',
        'x-real-ip': '203.0.113.7',
        forwarded: 'for=1.2.3.4',
      }
      await send('/api/v1/validate', { headers })
      const [seen] = validators.flatMap((one) => one.seen)
      expect(seen?.headers['x-forwarded-for']).toBe('127.0.0.1')
      expect([seen?.headers['x-real-ip'], seen?.headers['forwarded']]).toEqual([undefined, undefined])
    })

    test.skipIf(name !== 'haproxy')('reads x-forwarded-for only from a peer in INGRESS_NETWORK', async () => {
      process.env['INGRESS_NETWORK'] = '127.0.0.0/8'
      const behind = make()
      const others = { https: await freePort(), http: await freePort(), metrics: await freePort() }
      try {
        await behind.start(configuration, others, (conf) => listen(place(conf), others))
        const headers = { 'x-forwarded-for': '203.0.113.7, 198.51.100.9' }
        await send('/api/v1/validate', { port: others.https, headers })
      } finally {
        delete process.env['INGRESS_NETWORK']
        await behind.stop()
      }
      expect(validators.flatMap((one) => one.seen)[0]?.headers['x-forwarded-for']).toBe('198.51.100.9')
    })

    test.skipIf(name !== 'haproxy')('forwards the address of a caller over IPv6 with LISTEN_IPV6', async () => {
      process.env['LISTEN_IPV6'] = 'true'
      const both = make()
      const others = { https: await freePort(), http: await freePort(), metrics: await freePort() }
      const overIpv6 = (conf: string): string =>
        conf.replace('bind :::443', `bind [::1]:${others.https}`).replace('bind :::80', `bind [::1]:${others.http}`)
      try {
        await both.start(configuration, others, (conf) => overIpv6(listen(place(conf), others)))
        for (const host of ['::1', '127.0.0.1']) await send('/api/v1/validate', { host, port: others.https })
      } finally {
        delete process.env['LISTEN_IPV6']
        await both.stop()
      }
      const seen = validators.flatMap((one) => one.seen.map(({ headers }) => headers['x-forwarded-for']))
      expect(new Set(seen)).toEqual(new Set(['::1', '127.0.0.1']))
    })

    test('reuses connections to the services', async () => {
      for (const one of validators) one.connections.clear()
      for (let i = 0; i < 60; i++) await send('/api/v1/validate')
      const used = validators.reduce((sum, one) => sum + one.connections.size, 0)
      expect(used).toBeLessThan(20)
    })

    test('redirects plain HTTP to https', async () => {
      const response = await fetch(`http://127.0.0.1:${ports.http}/docs`, { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([
        308,
        expect.stringMatching(/^https:.*\/docs$/),
      ])
    })

    test('responds to invalid HTTP with an error without a verdict', async () => {
      for (const lines of [
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\ncontent-length: nine\r\n\r\n',
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\nbad header: 1\r\n\r\n',
        'nonsense\r\n\r\n',
      ]) {
        const response = await sendRaw(lines)
        expect(response, lines).toMatch(/^HTTP\/1\.1 [45]\d\d /)
        expect(response, lines).not.toMatch(/content-type: application\/json|"valid"/i)
      }
      expect(validators.flatMap((one) => one.seen)).toEqual([])
    })

    test('returns 400 for a request without a host', async () => {
      const response = await sendRaw('POST /api/v2/license/validate HTTP/1.1\r\nconnection: close\r\n\r\n')
      expect(response).toMatch(/^HTTP\/1\.1 400 [^]*application\/problem\+json[^]*"code":"BAD_REQUEST"/)
      expect(validators.flatMap((one) => one.seen)).toEqual([])
    })

    test('logs no address of a caller', async () => {
      await send('/api/v1/validate', { headers: { 'x-forwarded-for': '203.0.113.7' } })
      expect(balancer.output).toContain('/api/v1/validate')
      expect(
        balancer.output.split('\n').filter((line) => line.startsWith('{') && /\d+\.\d+\.\d+\.\d+/.test(line)),
      ).toEqual([])
      expect(balancer.output).not.toMatch(/client: |203\.0\.113\.7|127\.0\.0\.1:\d+ \[/)
    })

    test('logs one JSON object per request, also for paths with special characters', async () => {
      for (const path of [String.raw`/quote"x\y]z`, '/%22%5c', '/{}'])
        await sendRaw(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
      await expect.poll(() => balancer.output).toContain('/{}')
      const lines = balancer.output.split('\n').filter((line) => line.startsWith('{'))
      const paths = lines.map((line) =>
        String(z.looseObject({ path: z.string().optional() }).parse(JSON.parse(line)).path),
      )
      expect(paths).toContain('/{}')
      expect(paths.some((path) => path.includes('quote') && path.includes('x'))).toBe(true)
    })

    test.skipIf(name !== 'haproxy')('haproxy accepts at most 50,000 connections', async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text()
      const most = Number(/^haproxy_process_max_connections (\d+)/m.exec(metrics)?.[1])
      expect(most).toBeGreaterThan(100)
      expect(most).toBeLessThanOrEqual(50_000)
      expect(readFileSync(join(INFRA, configuration), 'utf8')).toMatch(/^ {4}fd-hard-limit 100000$/m)
    })

    const readiness = async (): Promise<number[]> =>
      Promise.all(
        ['readyz', 'livez'].map(async (path) => (await fetch(`http://127.0.0.1:${ports.metrics}/${path}`)).status),
      )

    test.skipIf(name !== 'haproxy')('the balancer is ready while a server is available', async () => {
      expect(await readiness()).toEqual([200, 200])
    })

    test('loses no check when a validator is killed', async () => {
      const [gone, ...left] = validators
      gone?.close()
      const responses = await Promise.all(Array.from({ length: 50 }, () => send('/api/v1/validate')))
      expect(responses.map(({ body }) => body).filter((body) => !/"v[23]"/.test(body))).toEqual([])
      expect(left).toHaveLength(2)
    })

    test.skipIf(!checksReadiness)('uses validators that are not ready only when no other is left', async () => {
      const [, second, third] = validators
      if (!second || !third) throw new Error('expected three validators')
      second.isReady = false
      expect(await settlesOn(['v3'])).toBe(true)
      third.isReady = false
      expect(await comesFrom('/api/v1/validate', ['v2'])).toBe(true)
      second.isReady = true
      expect(await settlesOn(['v2'])).toBe(true)
    })

    test('returns 503 without a verdict when no service runs', async () => {
      for (const one of managements) one.close()
      // haproxy may close a keep-alive connection without a response when the connection to the server was closed. The test then retries,
      // as a browser does.
      const response = await send('/docs').catch(() => send('/docs'))
      expect(response).toMatchObject({ status: 503, type: 'application/problem+json' })
      expect(JSON.parse(response.body)).toMatchObject({ status: 503, code: 'UNAVAILABLE' })
      for (let i = 0; i < 10; i++) expect(await sendOverHttp2('/api/v1/products', '{}')).toBe(503)
    })

    test.skipIf(name !== 'haproxy')('the balancer is not ready when no server is available', async () => {
      for (const one of validators) one.close()
      await expect.poll(readiness, { timeout: 10_000 }).toEqual([503, 200])
    })

    /** Repeats 20 concurrent requests for about 10 s. Returns true as soon as all 20 responses come from services of `names`. */
    async function settlesOn(names: string[]): Promise<boolean> {
      for (let attempt = 0; attempt < 100; attempt++) {
        const responses = await Promise.all(Array.from({ length: 20 }, () => send('/api/v1/validate')))
        if (responses.every(({ body }) => names.some((one) => body.includes(`"${one}"`)))) return true
        await sleep(100)
      }
      return false
    }
  })
}
