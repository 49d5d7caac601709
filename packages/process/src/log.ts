/**
 * The log: one JSON line an entry on standard output. An error is cut down to its class, message, code and stack,
 * because the other fields of errors (a socket's peer, a Postgres row) can hold what must never be written down.
 */
import { pino, stdTimeFunctions, type Logger } from 'pino'

import type { LogLevel } from './config.ts'

export type { Logger } from 'pino'

/** `name` is the program's; `level` usually comes from LOG_LEVEL. */
export function createLogger(name: string, level: LogLevel = 'info'): Logger {
  const options = {
    level,
    base: { program: name, pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  // Synchronous, so that nothing is left to be flushed at the exit: with nobody left who reads, that flush would never end.
  return pino(options, pino.destination({ dest: 1, sync: true }))
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
