/**
 * The protocol between the suite and the client under test, which is a command line program: one JSON object per line in,
 * one JSON object per line out, in order. docs/client/contract-suite.md describes it for the authors of clients.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface PublicKey {
  keyId: string
  publicKey: string
}

/** Creates a client, as a start of the app does. The later commands use the client that was created last. */
export interface OpenCommand {
  command: 'open'
  baseUrl: string
  apiKey: string
  publicKeys: readonly PublicKey[]
  licenseKey: string
  /** Null means that the app accepts files of every product. */
  productId: string | null
  /** Null means that the app passes no machine id. */
  machineId: string | null
  hostname: string | null
  /** Path of the file that the client stores its state in. Its folder may be missing. */
  storage: string
  /** The time budget of a call. */
  timeoutMs: number
  /** How far the device's clock is ahead of the real one; negative when it is behind. */
  clockAheadMs: number
}

/** Judges a license file without a client, a network or a clock. */
export interface JudgeCommand {
  command: 'judge'
  file: string
  licenseKey: string
  /** As for `open`. */
  productId: string | null
  publicKeys: readonly PublicKey[]
  nowMs: number
  latestSeenMs: number
}

export type Command = OpenCommand | JudgeCommand | { command: 'validate' | 'activate' | 'deactivate' }

/** A line of the program. `open` returns `{}`, or `{error}` for options that cannot work; `judge` returns `{outcome}`. */
export type Reply = Readonly<Record<string, unknown>>

// Longer than any time budget in the suite. Only a client that hangs reaches it.
const COMMAND_TIMEOUT_MS = 30_000

/** A running client under test. Invariant: one command at a time. */
export class ClientProgram {
  readonly #process: ChildProcess
  #waiting: ((line: string | null) => void) | null = null

  /** Starts the program; its standard error is passed through. */
  constructor([file = '', ...args]: readonly string[]) {
    this.#process = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#process.on('error', () => this.#settle(null))
    this.#process.stdin?.on('error', () => this.#settle(null))
    if (this.#process.stdout === null) throw new Error('The program has no output.')
    const lines = createInterface({ input: this.#process.stdout })
    lines.on('line', (line) => this.#settle(line))
    lines.on('close', () => this.#settle(null))
  }

  /** Sends a command and returns the reply. Rejects when the program ended, hangs, or wrote something else. */
  async send(command: Command): Promise<Reply> {
    const line = await new Promise<string | null>((resolve) => {
      const timer = setTimeout(() => this.#settle(null), COMMAND_TIMEOUT_MS)
      this.#waiting = (received) => {
        clearTimeout(timer)
        resolve(received)
      }
      if (this.#process.exitCode !== null || this.#process.pid === undefined) this.#settle(null)
      else this.#process.stdin?.write(`${JSON.stringify(command)}\n`)
    })
    if (line === null) throw new Error(`The program ended or did not reply to "${command.command}".`)
    return parseReply(line)
  }

  stop(): void {
    this.#process.stdin?.end()
    this.#process.kill()
  }

  #settle(line: string | null): void {
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.(line)
  }
}

function parseReply(line: string): Reply {
  const value: unknown = JSON.parse(line)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`The program replied with something other than a JSON object: ${line.slice(0, 200)}`)
  return Object.fromEntries(Object.entries(value))
}
