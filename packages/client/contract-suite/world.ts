/** The environment of a case: a service, a gateway that injects faults, a folder, and the client under test. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import { MESSAGE_AFTER_REJECTION, OFFLINE_MESSAGES } from '../src/messages.ts'
import type { Call, ClientProgram, OpenCommand, Reply } from './protocol.ts'
import { type Gateway, startGateway } from './service/gateway.ts'
import { type Service, startService } from './service/service.ts'

/** The required fields of a reply, which may have other fields too. */
export type Expected = Readonly<Record<string, unknown>>

export interface Conditions {
  /** The command line of the client under test. */
  command: readonly string[]
  /** The duration that a call may have, as a multiple of its time budget. */
  lateness: number
}

export interface World extends Conditions {
  service: Service
  gateway: Gateway
  /** The client under test, which runs. */
  program: ClientProgram
  /** The path of the client's storage. */
  storage: string
  /** A folder for the files of the case. */
  folder: string
  /** Returns the command that creates a client of this world. */
  openCommand: (options: Partial<OpenCommand>) => OpenCommand
  /** Creates a client. Rejects when the program reports an error. */
  open: (options?: Partial<OpenCommand>) => Promise<void>
  /** Rejects unless the program reports an error for these options that names one of them, in the spelling of its language. */
  openError: (options: Partial<OpenCommand>) => Promise<void>
  /** Sends a command and requires these fields in its reply. */
  requireResult: (
    call: Exclude<Call['command'], 'importFile' | 'release' | 'requestCode'>,
    expected: Expected,
  ) => Promise<Reply>
  /** Imports a license file and requires these fields in the reply. */
  requireImport: (file: string, expected: Expected) => Promise<void>
  close: () => Promise<void>
}

// The time budget of a call in milliseconds, which suffices on a busy machine. Cases without a response set a shorter budget.
const TIMEOUT_MS = 9000

const OFFLINE_TEXTS: ReadonlyMap<unknown, string> = new Map(Object.entries(OFFLINE_MESSAGES))

export const ONLINE_VALID = { source: 'online', valid: true, code: 'VALID' }
export const OFFLINE_VALID = { source: 'offline', valid: true, code: 'VALID' }
export const NO_FILE = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'NO_FILE' }

/** Returns the expected result of an offline check that is rejected for this reason. */
export function offlineRejection(reason: string): Expected {
  return { ...NO_FILE, reason }
}

export async function startWorld(program: ClientProgram, conditions: Conditions): Promise<World> {
  const service = await startService()
  const gateway = await startGateway(() => service.url)
  const folder = await mkdtemp(join(tmpdir(), 'keyward-contract-'))
  const storage = join(folder, 'state', 'license.json')
  const openCommand = (options: Partial<OpenCommand>): OpenCommand => ({
    command: 'open',
    baseUrl: gateway.url,
    apiKey: service.apiKey,
    publicKeys: service.publicKeys,
    licenseKey: service.licenseKey,
    productId: null,
    machineId: 'machine-1',
    hostname: 'workshop',
    storage,
    timeoutMs: TIMEOUT_MS,
    clockAheadMs: 0,
    requireSignature: false,
    entitlements: false,
    ...options,
  })
  const sendOpen = (options: Partial<OpenCommand>) => program.send(openCommand(options))
  return {
    ...conditions,
    program,
    openCommand,
    folder,
    service,
    gateway,
    storage,
    async open(options = {}) {
      const reply = await sendOpen(options)
      if ('error' in reply) throw new Error(`The program could not create a client: ${String(reply['error'])}`)
    },
    async openError(options) {
      const { error } = await sendOpen(options)
      const text = typeof error === 'string' ? error.replaceAll('_', '').toLowerCase() : ''
      // A builder has a method for one key, so the plural is optional.
      if (!Object.keys(options).some((option) => text.includes(option.replace(/s$/, '').toLowerCase())))
        throw new Error(`The program must report an error that names the option; got ${JSON.stringify(error)}.`)
    },
    async requireResult(call, expected) {
      const reply = await program.send({ command: call })
      requireFields(call, reply, expected)
      requireMessage(call, reply)
      return reply
    },
    async requireImport(file, expected) {
      requireFields('importFile', await program.send({ command: 'importFile', file }), expected)
    },
    async close() {
      await Promise.all([gateway.stop(), service.close()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Throws unless the reply has these fields with these values. */
export function requireFields(what: string, reply: Reply, expected: Expected): void {
  for (const [field, value] of Object.entries(expected))
    if (!isDeepStrictEqual(reply[field], value))
      throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(reply)}`)
}

/** Throws unless a result that is not valid has a sentence for the user: in an outage, the text that all clients share. */
function requireMessage(command: string, reply: Reply): void {
  const { valid, code, reason, rejectedAs, message } = reply
  if (!['validate', 'activate'].includes(command) || valid === true) return
  const wasRejected = typeof rejectedAs === 'string' && rejectedAs !== ''
  const offline = wasRejected ? MESSAGE_AFTER_REJECTION : OFFLINE_TEXTS.get(reason)
  const isGood = code === 'OFFLINE_REFUSED' ? message === offline : typeof message === 'string' && message !== ''
  if (!isGood) throw new Error(`${command}: expected a message for the user, got ${JSON.stringify(reply)}`)
}

/** Throws an error with both values unless they are equal. */
export function requireEqual(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`)
}
