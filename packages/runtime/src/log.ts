/**
 * Writes the log: one JSON line per entry on standard output. An error is logged with its class, message, code, stack and
 * cause. Its other fields are omitted, because they may contain data that must never be stored, such as a socket's peer or a
 * row of Postgres (docs/api.md#d1).
 */

import { pino, stdTimeFunctions, type Logger } from 'pino'

import type { LogLevel } from './config.ts'
import { currentTrace } from './trace.ts'

export type { Logger } from 'pino'

/**
 * Matches the control characters that JSON does not escape, and the characters that change the direction of text. A terminal that shows the
 * log would interpret them.
 */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Returns a logger. `name` is the name of the program, and `level` usually comes from KEYWARD_LOG_LEVEL. */
export function createLogger(name: string, level: LogLevel = 'info'): Logger {
  const options = {
    level,
    base: { program: name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    mixin: traceFields,
  }
  // Writes are synchronous, because a flush at the exit would never end when no process reads the pipe any more.
  const output = pino.destination({ dest: 1, sync: true })
  return pino(options, { write: (line) => output.write(line.replace(UNSAFE, escaped)) })
}

/** Returns the field of a log line that contains the trace id of the running request, if a request is running. */
function traceFields(): { traceId?: string } {
  const trace = currentTrace()
  return trace === undefined ? {} : { traceId: trace.traceId }
}

export interface ErrorDescription {
  type: string
  message: string
  code?: string
  stack?: string
  cause?: ErrorDescription
}

export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const stack = error.stack === undefined ? {} : { stack: error.stack }
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) }
  return { type: error.name, message: error.message, ...code, ...stack, ...cause }
}
