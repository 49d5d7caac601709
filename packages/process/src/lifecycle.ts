/**
 * How a program begins and ends: what it says when it cannot start, how it tells a parent process that it listens,
 * and one way to stop, whoever asks. A stop runs once and within a bounded time, and always ends in an exit.
 */
import { ConfigError, variablesThatHold } from './config.ts'
import { describeError } from './log.ts'

export interface StopOptions {
  /** After this the process exits with 1, finished or not. */
  limitMs?: number
}

/**
 * Runs `stop` on SIGTERM, on SIGINT, and when the parent process that holds the other end of an IPC channel is gone;
 * then exits: with 0, or with 1 when `stop` failed or took too long. Further signals change nothing.
 * Returns a function that begins the same stop from inside, with an exit code of its own.
 */
export function onStop(stop: () => Promise<void>, options: StopOptions = {}): (exitCode?: number) => void {
  const limitMs = options.limitMs ?? 15_000
  let stopping = false
  const begin = (exitCode = 0): void => {
    if (stopping) return
    stopping = true
    setTimeout(() => {
      complain(`The stop took longer than ${limitMs} ms.`)
      process.exit(1)
    }, limitMs)
    stop().then(
      () => process.exit(exitCode),
      (error: unknown) => {
        complain(`The stop failed: ${describeError(error).message}`)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', () => begin())
  process.on('SIGINT', () => begin())
  // Without a parent there is nobody left who would stop this process.
  process.on('disconnect', () => begin())
  if (parentIsGone()) begin()
  return begin
}

/** Tells a parent process, if there is one, where this one listens. */
export function announceListening(ports: { port: number; adminPort: number }): void {
  if (process.connected) process.send?.({ type: 'listening', ...ports })
}

/** Whether there once was a channel to a parent: `send` stays when it closes. */
function parentIsGone(): boolean {
  return process.send !== undefined && !process.connected
}

/** Says in a sentence why the program cannot start, and exits with 1. For the last `catch` of a `main.ts`. */
export function failStart(error: unknown): never {
  complain(explainStart(error))
  process.exit(1)
}

/** Of a mistake in the program only the stack helps; other errors say in their message what is wrong outside. */
const MISTAKES: readonly (new () => Error)[] = [TypeError, RangeError, ReferenceError, SyntaxError]

/** The sentence of `failStart`. */
export function explainStart(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  const { message, code, stack } = describeError(error)
  const refused = code === undefined ? undefined : explainListening(error, code)
  if (refused !== undefined) return refused
  if (MISTAKES.some((mistake) => error instanceof mistake)) return stack ?? message
  // Several addresses of one host were tried: the error itself has no message.
  const reasons = error instanceof AggregateError ? error.errors.map((one) => describeError(one).message) : [message]
  return `The start failed: ${reasons.join('; ')}${code === undefined || reasons.join().includes(code) ? '' : ` (${code})`}`
}

/** Of an address or a port that cannot be had. */
function explainListening(error: unknown, code: string): string | undefined {
  const isListening = error instanceof Error && 'syscall' in error && error.syscall === 'listen'
  const port = error instanceof Error && 'port' in error && typeof error.port === 'number' ? error.port : undefined
  const named = port === undefined ? '' : ` ${port}`
  const set = (value: unknown, ending: '_HOST' | '_PORT'): string => {
    const names = variablesThatHold(value, ending)
    return names.length === 0 ? 'set' : `set ${names.join(' or ')} to`
  }
  if (code === 'EADDRINUSE') return `The port${named} is taken by another program; ${set(port, '_PORT')} another one.`
  if (code === 'EACCES' && port !== undefined)
    return `The port${named} may not be opened by this user; ${set(port, '_PORT')} one above 1023.`
  if (code !== 'EADDRNOTAVAIL' || !isListening || !('address' in error)) return undefined
  return `This machine has no address ${String(error.address)}; ${set(error.address, '_HOST')} one that it has.`
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`)
}
