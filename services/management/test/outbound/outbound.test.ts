/** Tests the addresses to which webhooks may be sent (docs/api.md#w6). Every connection of the sender is recorded. */

import { buildConnector } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createConnector } from '../../src/outbound/connector.ts'
import {
  DEFAULT_PORTS,
  isAllowedAddress,
  parseNetworks,
  parsePorts,
  urlError,
  type WebhookNetwork,
} from '../../src/outbound/network.ts'
import { createSender, retryAfterSeconds } from '../../src/outbound/sender.ts'
import { RETRY_SECONDS, secondsToRetry } from '../../src/queue/retries.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'

const PUBLIC: WebhookNetwork = { allowedNetworks: [], allowedPorts: DEFAULT_PORTS, allowsHttp: false }
/** Allows every port, and HTTP, so that only the check of addresses can reject a URL. */
const ANY_PORT: WebhookNetwork = { allowedNetworks: [], allowedPorts: null, allowsHttp: true }

/** The addresses of each name. With several lists, each lookup returns the next list, as in a DNS rebinding attack. */
const NAMES: Record<string, string[][]> = {
  'private.example': [['10.1.2.3']],
  'loopback.example': [['127.0.0.1']],
  localhost: [['127.0.0.1', '::1']],
  'localhost.': [['127.0.0.1']],
  'metadata.google.internal': [['169.254.169.254']],
  'instance-data.ec2.internal': [['169.254.169.254']],
  'mapped.example': [['::ffff:127.0.0.1']],
  'nat64.example': [['64:ff9b::7f00:1']],
  'six-to-four.example': [['2002:7f00:1::']],
  'mixed.example': [['93.184.216.34', '10.0.0.1']],
  'mixed6.example': [['2606:2800:220:1::1', 'fd00::1']],
  'empty.example': [[]],
  'nonsense.example': [['not an address']],
  'rebinding.example': [['93.184.216.34'], ['127.0.0.1']],
}
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '0',
  '0.0.0.0',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '127.000.000.001',
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.254',
  '192.168.0.1',
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '0251.0376.0251.0376',
  '100.64.0.1',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '１２７.０.０.１',
  '①②⑦.⓪.⓪.①',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::ffff:a9fe:a9fe]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a00:1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
  '[fe80::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[100::1]',
  '[4000::1]',
  '[5f00::1]',
  ...Object.keys(NAMES).filter((name) => name !== 'rebinding.example'),
]

describe('a hostile URL', () => {
  let local: Receiver
  beforeAll(async () => {
    local = await startReceiver()
  })
  afterAll(() => local.close())

  const resolve = (name: string) => Promise.resolve(NAMES[name]?.[0] ?? [])

  test('rejects more than 60 hostile hosts before a connection is made', async () => {
    const connected: string[] = []
    const connect: buildConnector.connector = (options, callback) => {
      connected.push(options.hostname)
      callback(new Error('connected'), null)
    }
    const port = new URL(local.url).port
    for (const host of HOSTS) {
      const url = URL.parse(`http://${host}:${port}/`)
      if (url === null) continue
      const { promise, resolve: done } = Promise.withResolvers<Error | null>()
      const options = { hostname: url.hostname, host: url.host, protocol: 'http:', port }
      createConnector(ANY_PORT, resolve, connect)(options, (...[error]) => done(error))
      expect(await promise, host).not.toBeNull()
    }
    expect(connected).toEqual([])
    expect(HOSTS.length).toBeGreaterThan(60)
  })

  test('sends nothing to a receiver at a hostile host', async () => {
    const sender = createSender(ANY_PORT, resolve, 2_000)
    const port = new URL(local.url).port
    for (const host of HOSTS) {
      const attempt = await sender.send(`http://${host}:${port}/`, {}, '{}')
      expect(attempt.status, host).toBeNull()
      expect(attempt.error, host).not.toBeNull()
    }
    await sender.close()
    expect(local.received).toEqual([])
  })

  test('connects to the checked address of a name that resolves differently a moment later', async () => {
    const connected: string[] = []
    const connect: buildConnector.connector = (options, callback) => {
      connected.push(`${options.hostname} ${options.servername ?? ''}`)
      callback(new Error('connected'), null)
    }
    const answers = [...(NAMES['rebinding.example'] ?? [])]
    const rebinding = () => Promise.resolve(answers.shift() ?? [])
    const options = { hostname: 'rebinding.example', protocol: 'https:', port: '443' }
    const connectOnce = async () => {
      const { promise, resolve: done } = Promise.withResolvers<string>()
      createConnector(PUBLIC, rebinding, connect)(options, (...[error]) => done(error?.message ?? ''))
      return promise
    }
    expect(await connectOnce()).toBe('connected')
    expect(await connectOnce()).toContain('may not be sent')
    expect(connected).toEqual(['93.184.216.34 rebinding.example'])
  })

  test('closes a connection that reaches an address other than the checked one', async () => {
    const port = new URL(local.url).port
    // Simulates a connection that the system redirects: the checked address is public, and the socket is connected to this machine.
    const redirected: buildConnector.connector = (options, callback) =>
      buildConnector({})({ ...options, hostname: '127.0.0.1' }, callback)
    const { promise, resolve: done } = Promise.withResolvers<string>()
    const options = { hostname: '93.184.216.34', protocol: 'http:', port }
    createConnector(ANY_PORT, resolve, redirected)(options, (...[error]) => done(error?.message ?? ''))
    expect(await promise).toContain('may not be sent')
  })

  test.each([
    ['http://hooks.example.com/', 'must begin with https://'],
    ['HTTP://hooks.example.com/', 'must begin with https://'],
    ['file:///etc/passwd', 'must begin with https://'],
    ['gopher://hooks.example.com/', 'must begin with https://'],
    ['javascript:alert(1)', 'must begin with https://'],
    ['//hooks.example.com/', 'must be an absolute URL'],
    ['https://', 'must be an absolute URL'],
    ['https://hooks.example.com:22/', 'must have one of the ports 443, 8443; got 22'],
    ['https://hooks.example.com:80/', 'must have one of the ports 443, 8443; got 80'],
    ['https://hooks.example.com:0/', 'must have one of the ports'],
    ['https://a:b@hooks.example.com/', 'must not have a user'],
    ['https://hooks.example.com@127.0.0.1/', 'must not have a user'],
    ['https://hooks.example.com/#f', 'must not have a fragment'],
    ['https://127.1/', 'must not have a private'],
    ['https://[::ffff:10.0.0.1]/', 'must not have a private'],
    ['https://0x7f.1:8443/', 'must not have a private'],
  ])('%s is not a valid endpoint URL', (url, reason) => {
    expect(urlError(url, PUBLIC)).toContain(reason)
  })
})

describe('the operator', () => {
  test('the operator can allow networks, ports and http', () => {
    const allowedNetworks = parseNetworks(['10.0.0.0/8', 'fd00::/8', '192.168.1.5'])!
    for (const address of [
      '10.2.3.4',
      'fd12::1',
      '192.168.1.5',
      '::ffff:10.2.3.4',
      '93.184.216.34',
      '2606:2800:220:1::1',
    ])
      expect(isAllowedAddress(address, { allowedNetworks }), address).toBe(true)
    for (const address of ['11.0.0.1'.replace('11', '127'), '192.168.1.6', 'fe80::1', '64:ff9b::a02:304', 'x', ''])
      expect(isAllowedAddress(address, { allowedNetworks }), address).toBe(false)
    expect(urlError('http://10.0.0.1:3000/', { allowedNetworks, allowedPorts: [3000], allowsHttp: true })).toBeNull()
    expect(parseNetworks(['10.0.0.0/8', 'office'])).toBeUndefined()
    expect([parsePorts('443, 3000'), parsePorts('all'), parsePorts('0'), parsePorts('70000'), parsePorts('')]).toEqual([
      [443, 3000],
      null,
      undefined,
      undefined,
      undefined,
    ])
  })

  test('a webhook reaches allowed receivers, and times out when a receiver does not respond', async () => {
    const hook = await startReceiver((received, response) => {
      if (received.path !== '/hang') response.writeHead(200).end('fine')
      else response.writeHead(200).write('half')
    })
    const sender = createSender(
      { ...ANY_PORT, allowedNetworks: parseNetworks(['127.0.0.0/8'])! },
      () => Promise.resolve(['127.0.0.1']),
      500,
    )
    const { port } = new URL(hook.url)
    expect(await sender.send(`http://hooks.example.com:${port}/`, {}, '{}')).toMatchObject({
      status: 200,
      response: 'fine',
    })
    expect(await sender.send(`http://hooks.example.com:${port}/hang`, {}, '{}')).toMatchObject({
      status: 200,
      response: 'half',
    })
    const silent = await startReceiver(() => undefined)
    const attempt = await sender.send(silent.url, {}, '{}')
    expect(attempt.status).toBeNull()
    expect(attempt.error).toContain('no response within')
    await sender.close()
    await Promise.all([hook.close(), silent.close()])
  })
})

test('retries follow the schedule, with jitter and Retry-After', () => {
  const attempt = { at: new Date(), durationMs: 1, status: 500, error: 'x', response: '', retryAfterSeconds: null }
  const least = Array.from({ length: 10 }, (_, i) => secondsToRetry(i + 1, attempt, () => 0))
  expect(least).toEqual([...RETRY_SECONDS, null])
  expect(least.slice(0, 3)).toEqual([5, 300, 1_800])
  expect(secondsToRetry(1, attempt, () => 1)).toBe(6)
  expect(secondsToRetry(1, { ...attempt, status: 503, retryAfterSeconds: 600 }, () => 0)).toBe(600)
  expect(secondsToRetry(1, { ...attempt, status: 503, retryAfterSeconds: 10 ** 9 }, () => 0)).toBe(86_400)
  expect(secondsToRetry(1, { ...attempt, retryAfterSeconds: 600 }, () => 0)).toBe(5)
  expect(secondsToRetry(1, { ...attempt, status: 410 }, () => 0)).toBeNull()
  const now = Date.parse('2026-11-20T09:00:00Z')
  expect(retryAfterSeconds('Fri, 20 Nov 2026 09:01:00 GMT', now)).toBe(60)
  expect(
    ['-1', 'soon', '', undefined, ['5'], 'Thu, 01 Jan 1970 00:00:00 GMT'].map((value) => retryAfterSeconds(value, now)),
  ).toEqual(Array.from({ length: 6 }, () => null))
})
