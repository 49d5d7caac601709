/**
 * Continues the trace of a request (W3C Trace Context, the header `traceparent`). Log lines that a request causes contain the id of its
 * trace. The id comes from the caller, so its form is checked, and it is never used for a decision.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'

/** The place of a request in a trace. */
export interface Trace {
  /** The id of the trace: 32 hexadecimal digits. */
  readonly traceId: string
  /** The id of the work of this program: 16 hexadecimal digits. */
  readonly spanId: string
  /** Whether the caller records the trace. */
  readonly isSampled: boolean
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const INVALID_VERSION = 'ff'
const FIRST_VERSION = '00'
const SAMPLED = 1
const running = new AsyncLocalStorage<Trace>()

/** Returns 32 random hexadecimal digits. `randomUUID` takes a fraction of the time of `randomBytes`, because Node prepares its bytes. */
const randomDigits = (): string => randomUUID().replaceAll('-', '')

const isZero = (digits: string): boolean => /^0+$/.test(digits)

/** Continues the trace of a header, or begins one when the header is missing or malformed. */
export function continueTrace(traceparent: string | undefined): Trace {
  const spanId = randomDigits().slice(16)
  const [, version = '', traceId = '', parent = '', flags = '', rest] = TRACEPARENT.exec(traceparent ?? '') ?? []
  const isMalformed = version === '' || version === INVALID_VERSION || (version === FIRST_VERSION && rest !== undefined)
  if (isMalformed || isZero(traceId) || isZero(parent)) return { traceId: randomDigits(), spanId, isSampled: false }
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
}

/** Calls `run`. During the call, and in every asynchronous task that `run` starts, `currentTrace` returns the trace. */
export function runInTrace<T>(trace: Trace, run: () => T): T {
  return running.run(trace, run)
}

export function currentTrace(): Trace | undefined {
  return running.getStore()
}

/** Returns the header `traceparent` for a request to another program, or no header outside of a trace. */
export function traceHeaders(): Record<string, string> {
  const trace = currentTrace()
  if (trace === undefined) return {}
  return { traceparent: `${FIRST_VERSION}-${trace.traceId}-${trace.spanId}-${trace.isSampled ? '01' : '00'}` }
}
