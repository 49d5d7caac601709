// Against real servers on real sockets: one that stalls, one that is slower than the rate, one that cuts connections.
import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { promisify } from 'node:util'

import { afterEach, describe, expect, test } from 'vitest'

import { rawRequest } from '../src/load/checks.ts'
import { runAtRate, Schedule, type FixedRateOptions } from '../src/load/fixed-rate.ts'

const CHECK = { kind: 'known', apiKey: 'k', licenseKey: 'A', machineId: 'm', forwardedFor: null } as const
let server: Server | undefined

afterEach(async () => {
  const closing = server
  server = undefined
  if (closing === undefined) return
  closing.closeAllConnections()
  await new Promise((resolve) => closing.close(resolve))
})

async function serve(handle: (answer: (delayMs?: number) => void, number: number) => void): Promise<URL> {
  let number = 0
  server = createServer((_request, response) => {
    number += 1
    const answer = (delayMs = 0): void => void setTimeout(() => response.end('{"code":"VALID"}'), delayMs)
    handle(answer, number)
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return new URL(`http://127.0.0.1:${address.port}`)
}

function load(url: URL, options: Partial<FixedRateOptions> = {}) {
  const request = rawRequest(CHECK, 'v2', url.host)
  return runAtRate({ url, nextRequest: () => request, ratePerSecond: 200, connections: 1, durationMs: 600, ...options })
}

describe('a fixed rate', () => {
  test('a request is due one interval after the other', () => {
    const schedule = new Schedule(1000, 1e6)
    expect([schedule.take(), schedule.take(), schedule.nextNs()]).toEqual([1000, 2000, 3000])
  })

  test('sends all that was asked for and counts codes', async () => {
    const url = await serve((answer) => answer())
    const outcome = await load(url)
    expect(outcome.requests).toBe(120)
    expect(outcome.codes).toEqual({ VALID: 120 })
    expect(outcome.errors).toEqual({})
  })

  test('a stall of 300 ms counts for every request that was due meanwhile, not for one', async () => {
    const url = await serve((answer, number) => answer(number === 20 ? 300 : 0))
    const outcome = await load(url)
    expect(outcome.requests).toBe(120)
    // Of 120 requests about 60 were due in the stall: the median of all is far above the usual fraction of a millisecond.
    expect(outcome.latency.percentilesUs['75']).toBeGreaterThan(50_000)
  })

  test('says what it could never send to a server that is too slow', async () => {
    const url = await serve((answer) => answer(250))
    const outcome = await load(url, { drainMs: 300 })
    expect(Object.keys(outcome.errors)).toEqual(['never sent: the server fell behind the rate'])
  })

  test.each([200, 2000])(
    'told to end, at %d a second, it keeps its program no longer',
    { timeout: 20_000 },
    async (rate) => {
      const url = await serve((answer) => answer())
      const program = `
      const { runAtRate } = await import(${JSON.stringify(new URL('../src/load/fixed-rate.ts', import.meta.url).href)})
      const options = { url: new URL('${url.href}'), connections: 1, ratePerSecond: ${rate}, durationMs: 60_000 }
      const request = ${JSON.stringify(rawRequest(CHECK, 'v2', url.host).toString())}
      const told = new AbortController()
      let asked = 0
      const nextRequest = () => {
        asked += 1
        if (asked === 30) setImmediate(() => told.abort())
        return request
      }
      const { requests } = await runAtRate({ ...options, nextRequest, signal: told.signal })
      console.log(requests)`
      const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 15_000 })
      expect(Number((await run).stdout)).toBeGreaterThan(20)
    },
  )

  test('goes on over a new connection when the server cuts one, and counts the loss', async () => {
    const url = await serve((answer, number) => (number === 10 ? server?.closeAllConnections() : answer()))
    const outcome = await load(url)
    expect(Object.values(outcome.errors).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
    expect(outcome.requests).toBe(119)
  })
})
