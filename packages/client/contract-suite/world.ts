/** The surroundings of a case: a service, a gateway in front of it that fails on demand, a folder, and the client under test. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import type { ClientProgram, OpenCommand, Reply } from './protocol.ts'
import { type Gateway, startGateway } from './service/gateway.ts'
import { type Service, startService } from './service/service.ts'

/** The fields of a reply that a case requires; the reply may have more. */
export type Expected = Readonly<Record<string, unknown>>

export interface World {
  service: Service
  gateway: Gateway
  /** Path of the client's storage. */
  storage: string
  /** Creates a client, as at a start of the app. Fails when the program reports an error. */
  open: (options?: Partial<OpenCommand>) => Promise<void>
  /** Returns the error that the program reports for these options. Fails when it reports none. */
  openError: (options: Partial<OpenCommand>) => Promise<string>
  /** Sends a command and requires these fields in its reply. */
  requireResult: (command: 'validate' | 'activate' | 'deactivate', expected: Expected) => Promise<Reply>
  close: () => Promise<void>
}

// Ample for a busy machine. Only a case in which the service does not respond uses it up, so that one sets its own.
const TIMEOUT_MS = 9000

export const ONLINE_VALID = { source: 'online', valid: true, code: 'VALID' }
export const OFFLINE_VALID = { source: 'offline', valid: true, code: 'VALID' }
export const NO_FILE = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'NO_FILE' }

/** Returns the expected result of an offline check that a stored file does not allow. */
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
      if (typeof error !== 'string' || error === '') throw new Error('The program accepted options that cannot work.')
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

/** Fails unless the reply has these fields with these values. */
export function requireFields(what: string, reply: Reply, expected: Expected): void {
  for (const [field, value] of Object.entries(expected))
    if (!isDeepStrictEqual(reply[field], value))
      throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(reply)}`)
}

/** Fails with both values unless they are equal. */
export function requireEqual(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected))
    throw new Error(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`)
}
