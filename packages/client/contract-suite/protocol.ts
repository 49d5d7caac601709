/**
 * The protocol between the suite and the client under test, which runs as a command line program. The program reads commands and writes
 * replies in the same order, each as a JSON object in one line. packages/client/contract-suite/README.md describes the protocol for authors of
 * clients.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface PublicKey {
  keyId: string
  publicKey: string
}

/** Creates a client, as at a start of the app. Later commands use the most recently created client. */
export interface OpenCommand {
  command: 'open'
  baseUrl: string
  apiKey: string
  publicKeys: readonly PublicKey[]
  licenseKey: string
  /** The product id of the app; null for an app that accepts files of all products. */
  productId: string | null
  /** The machine id; null for an app that passes none. */
  machineId: string | null
  hostname: string | null
  /** The path of the file in which the client stores its state. The folder may be missing. */
  storage: string
  /** The time budget of a call in milliseconds. */
  timeoutMs: number
  /** The time by which the device's clock is ahead of the real clock, in milliseconds. It is negative for a slow clock. */
  clockAheadMs: number
  /** Whether the client accepts only signed responses. */
  requireSignature: boolean
  /** Whether the results contain the entitlements of the license. */
  entitlements: boolean
}

/** Judges a license file at a given time, without a client or a network. */
export interface JudgeCommand {
  command: 'judge'
  file: string
  licenseKey: string
  /** The product id of the app, as in `OpenCommand`. */
  productId: string | null
  /** The machine id, as in `OpenCommand`. */
  machineId: string | null
  publicKeys: readonly PublicKey[]
  nowMs: number
  latestSeenMs: number
}

/** Verifies a signed response, without a client or a network. The reply is `{outcome}`. */
export interface VerifyCommand {
  command: 'verify'
  /** The value of the header, or null without the header. */
  signature: string | null
  path: string
  status: number
  apiKey: string
  /** The bodies of the request and the response, which are sent as UTF-8. */
  request: string
  response: string
  publicKeys: readonly PublicKey[]
  latestSignedMs: number
}

/** A call of the client that the last `open` has created. */
export type Call =
  | { command: 'validate' | 'activate' | 'deactivate' | 'machines' | 'refreshFile' | 'requestCode' }
  /** Releases the slot of a listed machine. */
  | { command: 'release'; ref: string }
  /** Imports the license file in the text. */
  | { command: 'importFile'; file: string }

/** Validates, and cancels the call after `afterMs` in the way of the language. The reply may be `{cancelled: true}`. */
export interface CancelCommand {
  command: 'validateAndCancel'
  afterMs: number
}

/** Opens the machine key in a file. The reply is `{machineId, isNew, isEphemeral}` or `{error}`. */
export interface MachineKeyCommand {
  command: 'machineKey'
  path: string
}

export type Command = OpenCommand | JudgeCommand | VerifyCommand | MachineKeyCommand | CancelCommand | Call

/** A line that the program writes. The reply to `open` is `{}`, or `{error}` for invalid options. The reply to `judge` and `verify` is `{outcome}`. */
export type Reply = Readonly<Record<string, unknown>>

// The timeout of a command. It exceeds all time budgets of the suite, so only a client that hangs reaches it.
const COMMAND_TIMEOUT_MS = 30_000

/** A running client under test. Invariant: the program executes at most one command at a time. */
export class ClientProgram {
  readonly #process: ChildProcess
  #waiting: ((line: string | null) => void) | null = null

  /** Starts the program. Its standard error is inherited. */
  constructor([file = '', ...args]: readonly string[]) {
    this.#process = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#process.on('error', () => this.#settle(null))
    this.#process.stdin?.on('error', () => this.#settle(null))
    if (this.#process.stdout === null) throw new Error('The program has no standard output.')
    const lines = createInterface({ input: this.#process.stdout })
    lines.on('line', (line) => this.#settle(line))
    lines.on('close', () => this.#settle(null))
  }

  /** Sends a command and returns the reply. Rejects when the program ends, hangs, or writes anything but a JSON object. */
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
    throw new Error(`The reply must be a JSON object in one line; got: ${line.slice(0, 200)}`)
  return Object.fromEntries(Object.entries(value))
}
