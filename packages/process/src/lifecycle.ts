/**
 * The start and the stop of a program: the message when it cannot start, the message to a parent process when it listens, and
 * one way to stop. A stop runs once, within a bounded time, and always ends in an exit (docs/api.md#p5).
 */

import { ConfigError, type Variables } from './config.ts'
import { describeError } from './log.ts'

export interface StopOptions {
  /** After this the process exits with 1, finished or not. */
  limitMs?: number
}

/**
 * Runs `stop` on SIGTERM, on SIGINT, and when the parent process at the other end of an IPC channel has ended. Then exits with
 * 0, or with 1 when `stop` failed or took too long. Further signals have no effect.
 * Returns a function with which the program itself begins the same stop; its argument is the exit code.
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
  // Without its parent, nothing else would stop this process.
  process.on('disconnect', () => begin())
  if (parentIsGone()) begin()
  return begin
}

/** Sends the ports of this process to its parent process, if there is one. */
export function announceListening(ports: { port: number; adminPort: number }): void {
  if (process.connected) process.send?.({ type: 'listening', ...ports })
}

/** Whether the channel to a parent process has closed; `process.send` remains then. */
function parentIsGone(): boolean {
  return process.send !== undefined && !process.connected
}

/** Prints why the program cannot start, and exits with 1. For the last `catch` of a `main.ts`; see `explainStart`. */
export function failStart(error: unknown, variables: Variables = {}): never {
  printError(explainStart(error, variables))
  process.exit(1)
}

/** These are mistakes in the program, where only the stack helps. Other errors describe something outside of it. */
const MISTAKES: readonly (new () => Error)[] = [TypeError, RangeError, ReferenceError, SyntaxError]

/**
 * Returns why the program cannot start, in a sentence. When an address or a port is not available, it names the variable that
 * has this value, if it is among `variables` (`effectiveVariables`).
 */
export function explainStart(error: unknown, variables: Variables = {}): string {
  if (error instanceof ConfigError) return error.message
  const { message, code, stack } = describeError(error)
  const explained = code === undefined ? undefined : explainListening(error, code, variables)
  if (explained !== undefined) return explained
  if (MISTAKES.some((mistake) => error instanceof mistake)) return stack ?? message
  // When several addresses of one host were tried, the error itself has no message.
  const reasons = error instanceof AggregateError ? error.errors.map((one) => describeError(one).message) : [message]
  return `The start failed: ${reasons.join('; ')}${code === undefined || reasons.join().includes(code) ? '' : ` (${code})`}`
}

/** Returns undefined unless an address or a port is not available. */
function explainListening(error: unknown, code: string, variables: Variables): string | undefined {
  const isListening = error instanceof Error && 'syscall' in error && error.syscall === 'listen'
  const port = error instanceof Error && 'port' in error && typeof error.port === 'number' ? error.port : undefined
  const named = port === undefined ? '' : ` ${port}`
  const set = (value: unknown, ending: '_HOST' | '_PORT'): string => {
    const names = Object.keys(variables).filter((name) => name.endsWith(ending) && variables[name] === value)
    return names.length === 0 ? 'set' : `set ${names.join(' or ')} to`
  }
  if (code === 'EADDRINUSE') return `The port${named} is taken by another program; ${set(port, '_PORT')} another one.`
  if (code === 'EACCES' && port !== undefined)
    return `The port${named} may not be opened by this user; ${set(port, '_PORT')} one above 1023.`
  if (code !== 'EADDRNOTAVAIL' || !isListening || !('address' in error)) return undefined
  return `This machine has no address ${String(error.address)}; ${set(error.address, '_HOST')} one that it has.`
}

function printError(line: string): void {
  process.stderr.write(`${line}\n`)
}
