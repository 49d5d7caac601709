/** The environment of a case: a service, a gateway that injects faults, a folder, and the client under test. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import type { ClientProgram, OpenCommand, Reply } from './protocol.ts'
import { type Gateway, startGateway } from './service/gateway.ts'
import { type Service, startService } from './service/service.ts'

/** The required fields of a reply, which may have other fields too. */
export type Expected = Readonly<Record<string, unknown>>

export interface World {
  service: Service
  gateway: Gateway
  /** The path of the client's storage. */
  storage: string
  /** Creates a client. Rejects when the program reports an error. */
  open: (options?: Partial<OpenCommand>) => Promise<void>
  /** Returns the error that the program reports for these options. Rejects when the program accepts them. */
  openError: (options: Partial<OpenCommand>) => Promise<string>
  /** Sends a command and requires these fields in its reply. */
  requireResult: (command: 'validate' | 'activate' | 'deactivate', expected: Expected) => Promise<Reply>
  close: () => Promise<void>
}

// The time budget of a call in milliseconds, which suffices on a busy machine. Cases without a response set a shorter budget.
const TIMEOUT_MS = 9000

export const ONLINE_VALID = { source: 'online', valid: true, code: 'VALID' }
export const OFFLINE_VALID = { source: 'offline', valid: true, code: 'VALID' }
export const NO_FILE = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'NO_FILE' }

/** Returns the expected result of an offline check that is rejected for this reason. */
export function offlineRejection(reason: string): Expected {
  return { ...NO_FILE, reason }
}

export async function startWorld(program: ClientProgram): Promise<World> {
  const service = await startService()
  const gateway = await startGateway(() => service.url)
  const folder = await mkdtemp(join(tmpdir(), 'keyward-contract-'))
  const storage = join(folder, 'state', 'license.json')
  const sendOpen = (options: Partial<OpenCommand>) =>
    program.send({
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
      ...options,
    })
  return {
    service,
    gateway,
    storage,
    async open(options = {}) {
      const reply = await sendOpen(options)
      if ('error' in reply) throw new Error(`The program could not create a client: ${String(reply['error'])}`)
    },
    async openError(options) {
      const { error } = await sendOpen(options)
      if (typeof error !== 'string' || error === '')
        throw new Error('The program must report an error for these options, but accepted them.')
      return error
    },
    async requireResult(command, expected) {
      const reply = await program.send({ command })
      requireFields(command, reply, expected)
      return reply
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

/** Throws an error with both values unless they are equal. */
export function requireEqual(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`)
}
