import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request, type RequestOptions } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { type Balancer, type BalancerPorts, Haproxy, isInstalled, Nginx } from '../cluster/balancer.ts'
import { freePort } from '../shared/ports.ts'
import { VALIDATION_PATHS } from '../start/gateway.ts'
import { Upstream } from './upstream.ts'

interface Answer {
  status: number
  type: string
  body: string
}

const hasOpenssl = isInstalled('openssl', 'version')
const cases = [
  {
    name: 'haproxy',
    configuration: 'haproxy/haproxy.cfg',
    make: () => new Haproxy(),
    isHere: hasOpenssl && isInstalled('haproxy', '-v'),
    listen: (conf: string, ports: BalancerPorts) =>
      conf
        .replace('bind :443', `bind 127.0.0.1:${ports.https}`)
        .replace('bind :80', `bind 127.0.0.1:${ports.http}`)
        .replace('bind :8404', `bind 127.0.0.1:${ports.metrics}`),
    checksReadiness: true,
    ofChunks: [411],
  },
  {
    name: 'nginx',
    configuration: 'nginx/nginx.conf',
    make: () => new Nginx(),
    isHere: hasOpenssl && isInstalled('nginx', '-v'),
    listen: (conf: string, ports: BalancerPorts) =>
      conf
        .replace('listen 443', `listen 127.0.0.1:${ports.https}`)
        .replace('listen 80', `listen 127.0.0.1:${ports.http}`),
    checksReadiness: false,
    ofChunks: [400, '15'],
  },
]

for (const { name, configuration, make, isHere, listen, checksReadiness, ofChunks } of cases) {
  describe.skipIf(!isHere)(`${name} (needs ${name} and openssl)`, { timeout: 30_000 }, () => {
    let balancer: Balancer
    let ports: BalancerPorts
    let validators: Upstream[]
    let managements: Upstream[]
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false })

    async function ask(path: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
      const { body, ...rest } = options
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const asked = request({ host: '127.0.0.1', port: ports.https, path, agent, ...rest }, resolve)
        asked.on('error', reject).end(body)
      })
      const { statusCode: status = 0, headers } = response
      return { status, type: headers['content-type'] ?? '', body: await text(response) }
    }

    /** The status over HTTP/2, where bodies need no length; 0 when the stream is reset. */
    async function askOverHttp2(path: string, body: string): Promise<number> {
      const session = connectHttp2(`https://127.0.0.1:${ports.https}`, { rejectUnauthorized: false })
      // A connection that is reset fails its stream as well, which is all that is asked for here; after that it is no matter.
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

    /** Asks until the answer is from one of these, and says whether it ever was. */
    async function comesFrom(path: string, names: string[]): Promise<boolean> {
      for (let attempt = 0; attempt < 400; attempt++) {
        const { body } = await ask(path)
        if (names.some((one) => body.includes(`"${one}"`))) return true
        await sleep(25)
      }
      return false
    }

    /** `validator-2:8080 port 9080` becomes the real ports of the second validator. */
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
    }, 30_000)

    afterAll(async () => {
      agent.destroy()
      await balancer.stop()
      for (const upstream of [...validators, ...managements]) upstream.close()
    })

    beforeEach(() => {
      for (const upstream of [...validators, ...managements]) upstream.seen.length = 0
    })

    test('does not take somebody else on its port for itself', async () => {
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

    test('validation goes to the validators, everything else to management', async () => {
      for (const path of VALIDATION_PATHS) expect((await ask(`${path}?x=1`)).body, path).toMatch(/"v[123]"/)
      for (const path of ['/', '/docs', '/api/v1/validate/', '/api/v1/validators', '/api/v1/licenses'])
        expect((await ask(path)).body, path).toMatch(/"m[12]"/)
    })

    test('verdicts pass as they are', async () => {
      const answer = await ask('/api/v2/license/validate', { method: 'POST', body: '{"license":"x"}' })
      expect(answer).toMatchObject({ status: 400, type: 'application/json' })
      const [seen] = validators.flatMap((one) => one.seen)
      expect(seen?.body.toString()).toBe('{"license":"x"}')
    })

    test('a check in chunks arrives with its length, or is told to come with one', async () => {
      const headers = { 'transfer-encoding': 'chunked' }
      const answer = await ask('/api/v2/license/validate', { method: 'POST', body: '{"license":"x"}', headers })
      const seen = validators.flatMap((one) => one.seen)
      expect([answer.status, ...seen.map((one) => one.headers['content-length'])]).toEqual(ofChunks)
      expect(await askOverHttp2('/api/v2/license/validate', '{"license":"x"}')).toBe(ofChunks[0])
      const managed = await ask('/api/v1/products', { method: 'POST', body: '{}', headers })
      expect(managed.body).toMatch(/"m[12]"/)
    })

    test("the caller's address is the one seen here, whatever the caller claims", async () => {
      const headers = {
        'x-forwarded-for': '203.0.113.7, 10.0.0.1',
        'x-real-ip': '203.0.113.7',
        forwarded: 'for=1.2.3.4',
      }
      await ask('/api/v1/validate', { headers })
      const [seen] = validators.flatMap((one) => one.seen)
      expect(seen?.headers['x-forwarded-for']).toBe('127.0.0.1')
      expect([seen?.headers['x-real-ip'], seen?.headers['forwarded']]).toEqual([undefined, undefined])
    })

    test('connections to the services are used again', async () => {
      for (const one of validators) one.connections.clear()
      for (let i = 0; i < 60; i++) await ask('/api/v1/validate')
      const used = validators.reduce((sum, one) => sum + one.connections.size, 0)
      expect(used).toBeLessThan(20)
    })

    test('plain HTTP is sent to https', async () => {
      const response = await fetch(`http://127.0.0.1:${ports.http}/docs`, { redirect: 'manual' })
      expect([response.status, response.headers.get('location')]).toEqual([
        308,
        expect.stringMatching(/^https:.*\/docs$/),
      ])
    })

    test('what is not HTTP is never answered like a verdict', async () => {
      for (const lines of [
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\ncontent-length: nine\r\n\r\n',
        'POST /api/v2/license/validate HTTP/1.1\r\nhost: x\r\nbad header: 1\r\n\r\n',
        'nonsense\r\n\r\n',
      ]) {
        const socket = connectTls({ host: '127.0.0.1', port: ports.https, rejectUnauthorized: false })
        socket.write(lines)
        const answer = await text(socket)
        expect(answer, lines).toMatch(/^HTTP\/1\.1 [45]\d\d /)
        expect(answer, lines).not.toMatch(/content-type: application\/json|"valid"/i)
      }
      expect(validators.flatMap((one) => one.seen)).toEqual([])
    })

    test('no address is in the log', async () => {
      await ask('/api/v1/validate', { headers: { 'x-forwarded-for': '203.0.113.7' } })
      expect(balancer.output).toContain('/api/v1/validate')
      expect(
        balancer.output.split('\n').filter((line) => line.startsWith('{') && /\d+\.\d+\.\d+\.\d+/.test(line)),
      ).toEqual([])
      expect(balancer.output).not.toMatch(/client: |203\.0\.113\.7|127\.0\.0\.1:\d+ \[/)
    })

    test('a validator that is killed costs no check', async () => {
      const [gone, ...left] = validators
      gone?.close()
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask('/api/v1/validate')))
      expect(answers.map(({ body }) => body).filter((body) => !/"v[23]"/.test(body))).toEqual([])
      expect(left).toHaveLength(2)
    })

    test.skipIf(!checksReadiness)(
      'checks avoid a validator that is not ready, and turn to stale ones at last',
      async () => {
        const [, second, third] = validators
        if (!second || !third) throw new Error('there are three')
        second.isReady = false
        expect(await settlesOn(['v3'])).toBe(true)
        third.isReady = false
        expect(await comesFrom('/api/v1/validate', ['v2'])).toBe(true)
        second.isReady = true
        expect(await settlesOn(['v2'])).toBe(true)
      },
    )

    test('nothing behind it is a 503 that no client takes for a verdict', async () => {
      for (const one of managements) one.close()
      // haproxy may end a kept connection unanswered when its last attempt found that of a server closed. Who reads asks again
      // then, as browsers do.
      const answer = await ask('/docs').catch(() => ask('/docs'))
      expect(answer).toMatchObject({ status: 503, type: 'application/problem+json' })
      expect(JSON.parse(answer.body)).toMatchObject({ status: 503, code: 'UNAVAILABLE' })
      for (let i = 0; i < 10; i++) expect(await askOverHttp2('/api/v1/products', '{}')).toBe(503)
    })

    /** Whether 20 answers in a row come from these alone, in the end. */
    async function settlesOn(names: string[]): Promise<boolean> {
      for (let attempt = 0; attempt < 100; attempt++) {
        const answers = await Promise.all(Array.from({ length: 20 }, () => ask('/api/v1/validate')))
        if (answers.every(({ body }) => names.some((one) => body.includes(`"${one}"`)))) return true
        await sleep(100)
      }
      return false
    }
  })
}
