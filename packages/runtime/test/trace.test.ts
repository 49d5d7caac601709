/** Tests which values of `traceparent` continue a trace, and which value is sent to other programs. */

import { expect, test } from 'vitest'

import { continueTrace, currentTrace, runInTrace, traceHeaders } from '../src/trace.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

test.each([
  ['the first version', `00-${TRACE}-${PARENT}-01`, true],
  ['other flags', `00-${TRACE}-${PARENT}-fe`, false],
  ['a later version with further fields', `cc-${TRACE}-${PARENT}-01-what`, true],
])('continues a trace with %s', (_name, header, isSampled) => {
  const trace = continueTrace(header)
  expect(trace).toMatchObject({ traceId: TRACE, isSampled })
  expect(trace.spanId).toMatch(/^[\da-f]{16}$/)
  expect(trace.spanId).not.toBe(PARENT)
})

test.each([
  ['a missing header', undefined],
  ['an empty header', ''],
  ['upper case', `00-${TRACE.toUpperCase()}-${PARENT}-01`],
  ['the version ff', `ff-${TRACE}-${PARENT}-01`],
  ['further fields of the first version', `00-${TRACE}-${PARENT}-01-x`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ['a parent of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['two headers', `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`],
  ['a line break', `00-${TRACE}-${PARENT}-01\n`],
  ['other text', `192.0.2.1 ${'x'.repeat(10_000)}`],
])('begins a trace for %s', (_name, header) => {
  const { traceId, isSampled } = continueTrace(header)
  expect(traceId).toMatch(/^[\da-f]{32}$/)
  expect(traceId).not.toBe(TRACE)
  expect(isSampled).toBe(false)
})

test('sends the trace, with a new span id, from everything that a request starts', async () => {
  expect([currentTrace(), traceHeaders()]).toEqual([undefined, {}])
  const trace = continueTrace(`00-${TRACE}-${PARENT}-01`)
  const headers = await runInTrace(trace, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return traceHeaders()
  })
  expect(headers).toEqual({ traceparent: `00-${TRACE}-${trace.spanId}-01` })
})
