/** Sends load to servers on real sockets. One server stalls, one is slower than the rate, and one cuts connections. */

import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { promisify } from 'node:util'

import { afterEach, describe, expect, test } from 'vitest'

import { rawRequest } from '../src/load/checks.ts'
import { runLoad, Schedule, type LoadOptions } from '../src/load/generator.ts'

const CHECK = { kind: 'known', apiKey: 'k', licenseKey: 'A', machineId: 'm', forwardedFor: null } as const
let server: Server | undefined

afterEach(async () => {
  const closing = server
  server = undefined
  if (closing === undefined) return
  closing.closeAllConnections()
  await new Promise((resolve) => closing.close(resolve))
})

async function serve(handle: (respond: (delayMs?: number) => void, number: number) => void): Promise<URL> {
  let number = 0
  server = createServer((_request, response) => {
    number += 1
    const respond = (delayMs = 0): void => void setTimeout(() => response.end('{"code":"VALID"}'), delayMs)
    handle(respond, number)
  })
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return new URL(`http://127.0.0.1:${address.port}`)
}

function load(url: URL, options: Partial<LoadOptions> = {}) {
  const request = rawRequest(CHECK, 'v2', url.host)
  return runLoad({ url, nextRequest: () => request, ratePerSecond: 200, connections: 1, durationMs: 600, ...options })
}

describe('a fixed rate', () => {
  test('schedules requests at equal intervals', () => {
    const schedule = new Schedule(1000, 1e6)
    expect([schedule.take(0), schedule.take(0), schedule.nextNs(0)]).toEqual([1000, 2000, 3000])
  })

  test.each([
    [100, 300],
    [300, 100],
  ])('schedules a ramp from %i to %i: the requests of both halves, and the last rate afterwards', (from, to) => {
    const schedule = new Schedule(0, from, { toPerSecond: to, durationMs: 2000 })
    const dueMs = Array.from({ length: 402 }, () => schedule.take(0) / 1e6)
    // The mean rate is 150 or 250 a second in the first half, and 200 in both.
    expect(dueMs.filter((due) => due < 1000)).toHaveLength(from < to ? 150 : 250)
    expect(dueMs[400]).toBeCloseTo(2000)
    expect(dueMs[401]).toBeCloseTo(2000 + 1000 / to)
  })

  test('returns the intervals of a ramp, whose sums are those of the run', async () => {
    const url = await serve((respond) => respond())
    const options = { ratePerSecond: 50, rampToPerSecond: 350, recordsIntervals: true, connections: 4 }
    const { intervals = [], requests, targetPerSecond } = await load(url, options)
    expect([requests, targetPerSecond, intervals.map(({ startMs }) => startMs)]).toEqual([120, 200, [0, 200, 400]])
    expect(intervals.map(({ responses }) => responses)).toEqual([20, 40, 60])
    expect(intervals.every(({ failures, latencyUs }) => failures === 0 && latencyUs !== null)).toBe(true)
  })

  test('sends every request and counts responses by code', async () => {
    const url = await serve((respond) => respond())
    const outcome = await load(url)
    expect(outcome.requests).toBe(120)
    expect(outcome.codes).toEqual({ VALID: 120 })
    expect(outcome.errors).toEqual({})
  })

  test('counts a stall of 300 ms for every request that was due during it', async () => {
    const url = await serve((respond, number) => respond(number === 20 ? 300 : 0))
    const outcome = await load(url)
    expect(outcome.requests).toBe(120)
    // About 60 of 120 requests were due during the stall, so at least a quarter of all requests waited longer than 50 ms.
    expect(outcome.latency.percentilesUs['75']).toBeGreaterThan(50_000)
  })

  test('counts the requests that it cannot send to a slow server as errors', async () => {
    const url = await serve((respond) => respond(250))
    const outcome = await load(url, { drainMs: 300 })
    expect(Object.keys(outcome.errors)).toEqual(['never sent: the server fell behind the rate'])
  })

  test.each([200, 2000])(
    'ends a run of %d requests a second on abort, and leaves nothing that keeps the process alive',
    { timeout: 20_000 },
    async (rate) => {
      const url = await serve((respond) => respond())
      const program = `
      const { runLoad } = await import(${JSON.stringify(new URL('../src/load/generator.ts', import.meta.url).href)})
      const options = { url: new URL('${url.href}'), connections: 1, ratePerSecond: ${rate}, durationMs: 60_000 }
      const request = ${JSON.stringify(rawRequest(CHECK, 'v2', url.host).toString())}
      const stopping = new AbortController()
      let requested = 0
      const nextRequest = () => {
        requested += 1
        if (requested === 30) setImmediate(() => stopping.abort())
        return request
      }
      const { requests } = await runLoad({ ...options, nextRequest, signal: stopping.signal })
      console.log(requests)`
      const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 15_000 })
      expect(Number((await run).stdout)).toBeGreaterThan(20)
    },
  )

  test('counts the lost request and reconnects when the server cuts a connection', async () => {
    const url = await serve((respond, number) => (number === 10 ? server?.closeAllConnections() : respond()))
    const outcome = await load(url)
    expect(Object.values(outcome.errors).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
    expect(outcome.requests).toBe(119)
  })
})
