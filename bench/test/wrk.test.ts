import { createServer } from 'node:http'

import { expect, test } from 'vitest'

import { prepareChecks } from '../src/load/checks.ts'
import { parseMix } from '../src/load/mix.ts'
import { hasWrk, parseWrk, runWrk, writeWrkChecks } from '../src/load/wrk.ts'

const RESULT =
  'Running 1s test\nRESULT {"requests":3000,"durationUs":1500000,"meanUs":81.2,"maxUs":900,"percentilesUs":{"50":80,"99.99":850},' +
  '"naps":7,"failures":30,"errors":{"connect":0,"read":2,"write":0,"timeout":0}}\n'

test('parses the line that the script prints', () => {
  const outcome = parseWrk(RESULT)
  expect(outcome).toMatchObject({
    requests: 3000,
    perSecond: 2000,
    statuses: { '2xx-3xx': 2970, '4xx-5xx': 30 },
    errors: { read: 2 },
    naps: 7,
  })
  expect(outcome.latency.percentilesUs['99.99']).toBe(850)
})

test('throws an error with the output of wrk when wrk fails', () => {
  expect(() => parseWrk('unable to connect to 127.0.0.1:1 Connection refused')).toThrow(/Connection refused/)
})

// wrk runs with two threads, because its script must find the event queue of each thread.
test.skipIf(!hasWrk())(
  'wrk counts every response, and counts naps only with the option `naps`',
  { timeout: 20_000 },
  async () => {
    let responded = 0
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        responded += 1
        setTimeout(() => response.end('{}'), 1)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const url = new URL(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
    const targets = [{ apiKey: 'key', licenseKey: 'license', machineIds: ['machine'] }]
    const checks = writeWrkChecks(prepareChecks({ targets, mix: parseMix('known=1'), length: 10 }), 'v2')
    try {
      for (const naps of [true, false]) {
        responded = 0
        const options = { url, checksFile: checks.path, connections: 8, durationMs: 1000, threads: 2, naps }
        const outcome = await runWrk(options)
        expect(outcome.errors).toEqual({})
        expect(outcome.requests).toBeGreaterThan(100)
        // Requests that were in flight at the end are not counted.
        expect(responded - outcome.requests).toBeGreaterThanOrEqual(0)
        expect(responded - outcome.requests).toBeLessThanOrEqual(16)
        const doesNap = naps && process.platform === 'linux'
        expect(outcome.naps, 'more than 10, or null').toSatisfy((n: number | null) =>
          doesNap ? Number(n) > 10 : n === null,
        )
      }
    } finally {
      checks.remove()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  },
)
