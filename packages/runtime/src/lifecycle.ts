/**
 * Starts and stops a program: explains a failed start, and sends the ports to a parent process after the program listens. A stop runs once,
 * within a bounded time, and always ends in an exit (docs/api.md#p5).
 */

import type { z } from 'zod'

import { ConfigError, type LogLevel, oldNames, type Variables } from './config.ts'
import { createLogger, describeError } from './log.ts'

export interface StopOptions {
  /** The time in milliseconds after which a running stop is abandoned and the process exits with 1. Default: 15,000. */
  limitMs?: number
}

/**
 * Runs `stop` on SIGTERM, on SIGINT, and when a parent process that is connected by IPC has ended. The process then exits
 * with 0, or with 1 when `stop` failed or took too long. Further signals have no effect.
 * Returns a function with which the program can begin the same stop itself. Its argument is the exit code.
 */
export function onStop(stop: () => Promise<void>, options: StopOptions = {}): (exitCode?: number) => void {
  const limitMs = options.limitMs ?? 15_000
  let stopping = false
  const begin = (exitCode = 0): void => {
    if (stopping) return
    stopping = true
    setTimeout(() => {
      printError(`The stop took longer than ${limitMs} ms.`)
      process.exit(1)
    }, limitMs)
    stop().then(
      () => process.exit(exitCode),
      (error: unknown) => {
        printError(`The stop failed: ${describeError(error).message}`)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', () => begin())
  process.on('SIGINT', () => begin())
  // A process that has lost its parent receives no signal to stop.
  process.on('disconnect', () => begin())
  if (parentIsGone()) begin()
  return begin
}

export interface Listening {
  port: number
  adminPort: number
  /** The release of uWebSockets.js that a validator has loaded. */
  httpLibrary?: string
}

/** Sends the ports of this process to its parent process, if there is one. */
export function announceListening({ port, adminPort, httpLibrary }: Listening): void {
  if (process.connected) process.send?.({ type: 'listening', port, adminPort, httpLibrary })
}

/** Returns whether the IPC channel to a parent process has closed. `process.send` still exists then. */
function parentIsGone(): boolean {
  return process.send !== undefined && !process.connected
}

/**
 * Reports why the program cannot start, and exits with 1. The last `catch` of a `main.ts` calls it. Prints the reason, or logs it when
 * `service` names a service. A service with a parent process prints the reason too, because the parent shows it to a person.
 */
export function failStart(error: unknown, variables: Variables = {}, service?: string): never {
  const reason = explainStart(error, variables)
  if (service === undefined || process.connected) printError(reason)
  else createLogger(service).fatal({ reasons: reason.split('\n') }, 'start failed')
  process.exit(1)
}

/** Reports the variables that are set by their old names, with their new names. A service logs them in one line. Other programs print them. */
export function reportOldNames(schema: z.ZodType, service?: string, level?: LogLevel): void {
  const variables = oldNames(schema)
  if (Object.keys(variables).length === 0) return
  if (service !== undefined) createLogger(service, level).warn({ variables }, 'variables have old names')
  else for (const [old, name] of Object.entries(variables)) printError(`${old} is the old name of ${name}.`)
}

/** The classes of errors that indicate a bug in the program. Only their stack is printed. Other errors describe the environment. */
const MISTAKES: readonly (new () => Error)[] = [TypeError, RangeError, ReferenceError, SyntaxError]

/**
 * Returns one sentence that explains why the program cannot start. When an address or a port is not available, the sentence names the entry
 * of `variables` (see `effectiveVariables`) that contains it.
 */
export function explainStart(error: unknown, variables: Variables = {}): string {
  if (error instanceof ConfigError) return error.message
  const { message, code, stack } = describeError(error)
  const explained = code === undefined ? undefined : explainListening(error, code, variables)
  if (explained !== undefined) return explained
  if (MISTAKES.some((mistake) => error instanceof mistake)) return stack ?? message
  // If every address of a host fails, Node throws an AggregateError without a message. Its `errors` contain the messages.
  const reasons = error instanceof AggregateError ? error.errors.map((one) => describeError(one).message) : [message]
  return `The start failed: ${reasons.join('; ')}${code === undefined || reasons.join().includes(code) ? '' : ` (${code})`}`
}

/** Explains that an address or a port is not available. Returns undefined for any other error. */
function explainListening(error: unknown, code: string, variables: Variables): string | undefined {
  const isListening = error instanceof Error && 'syscall' in error && error.syscall === 'listen'
  const port = error instanceof Error && 'port' in error && typeof error.port === 'number' ? error.port : undefined
  const named = port === undefined ? 'The port' : `Port ${port}`
  const set = (value: unknown, ending: '_HOST' | '_PORT'): string => {
    const names = Object.keys(variables).filter((name) => name.endsWith(ending) && variables[name] === value)
    return names.length === 0 ? 'choose' : `set ${names.join(' or ')} to`
  }
  if (code === 'EADDRINUSE') return `${named} is taken by another program; ${set(port, '_PORT')} a free port.`
  if (code === 'EACCES' && port !== undefined)
    return `${named} requires privileges that this user lacks; ${set(port, '_PORT')} a port above 1023.`
  if (code !== 'EADDRNOTAVAIL' || !isListening || !('address' in error)) return undefined
  return `This machine has no address ${String(error.address)}; ${set(error.address, '_HOST')} an address of this machine.`
}

function printError(line: string): void {
  process.stderr.write(`${line}\n`)
}
