import { expect, test } from 'vitest'

import { parseWrk } from '../src/load/wrk.ts'

const RESULT =
  'Running 1s test\nRESULT {"requests":3000,"durationUs":1500000,"meanUs":81.2,"maxUs":900,"percentilesUs":{"50":80,"99.99":850},' +
  '"refusals":30,"errors":{"connect":0,"read":2,"write":0,"timeout":0}}\n'

test('reads the line that the script prints', () => {
  const outcome = parseWrk(RESULT)
  expect(outcome).toMatchObject({
    requests: 3000,
    perSecond: 2000,
    statuses: { '2xx-3xx': 2970, '4xx-5xx': 30 },
    errors: { read: 2 },
  })
  expect(outcome.latency.percentilesUs['99.99']).toBe(850)
})

test('hands on what wrk says when it fails', () => {
  expect(() => parseWrk('unable to connect to 127.0.0.1:1 Connection refused')).toThrow(/Connection refused/)
})
