import { type Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  deactivateResponse,
  validateBatchResponse,
  validationErrorV1,
  validationErrorV2,
  verdictV1,
  verdictV2,
} from '@keyward/contract/validation'
import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  isBehindBalancer,
  type LicenseToInsert,
  startBalancer,
  type TestDatabase,
} from '@keyward/testkit'
import { expect } from 'vitest'
import type { z } from 'zod'

import type { ValidatorConfig } from '../src/config.ts'
import { type RunningValidator, startValidator as startWith } from '../src/validator.ts'
import { WorkerPool } from '../src/workers/pool.ts'

export interface Reply {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  body: unknown
}

export interface World {
  database: TestDatabase
  organizationId: string
  secret: string
  license(given?: Partial<LicenseToInsert>): Promise<Awaited<ReturnType<typeof insertLicense>>>
}

/** Creates an organization with an API key, in a new database unless one is given. */
export async function createWorld(existing?: TestDatabase): Promise<World> {
  const database = existing ?? (await createTestDatabase())
  const organizationId = await insertOrganization(database.pool)
  const { secret } = await insertApiKey(database.pool, { organizationId })
  return {
    database,
    organizationId,
    secret,
    license: (given = {}) => insertLicense(database.pool, { organizationId, ...given }),
  }
}

export function configFor(databaseUrl: string, given: Partial<ValidatorConfig> = {}): ValidatorConfig {
  return {
    databaseUrl,
    host: '127.0.0.1',
    port: 0,
    socketPath: null,
    adminHost: '127.0.0.1',
    adminPort: 0,
    adminUrl: null,
    workers: 1,
    corsOrigins: [],
    resolver: { trustedProxies: 'all', countryHeader: 'x-country' },
    staleAfterMs: 5_000,
    staleLimitMs: 900_000,
    indexFile: null,
    logLevel: 'silent',
    drainMs: 0,
    // This interval is shorter than in production (1 s), so that tests wait less for recorded usage.
    usageFlushMs: 200,
    ...given,
  }
}

/** Starts a validator with an HTTP server. */
export const startValidator = (config: ValidatorConfig, reserve: 'small' | 'large'): Promise<RunningValidator> =>
  startWith(config, (...parts) => new WorkerPool(...parts), reserve)

export async function startLoaded(
  databaseUrl: string,
  given: Partial<ValidatorConfig> = {},
  reserve: 'small' | 'large' = 'small',
): Promise<RunningValidator> {
  const validator = await startValidator(configFor(databaseUrl, given), reserve)
  await validator.loaded
  const balancer = await startBalancer('validator', validator)
  const close = async (): Promise<void> => {
    await validator.close()
    await balancer.close()
  }
  return { ...validator, port: balancer.port, close }
}

/** Returns the number of times that a validator has loaded all rows. */
export async function loadsOf({ adminPort }: RunningValidator): Promise<number> {
  const metrics = await send(adminPort, '/metrics', { method: 'GET' })
  return Number(/^keyward_feed_loads_total (\d+)$/m.exec(metrics.text)?.[1])
}

export interface Sent {
  method?: string
  headers?: Record<string, string>
  body?: unknown
  secret?: string
  /** The agent that provides the connection. Without an agent, the request opens a connection. */
  agent?: Agent
}

/** Sends one request. A body of text or bytes is sent unchanged, any other body as JSON. */
export function send(port: number, path: string, sent: Sent = {}): Promise<Reply> {
  const { body, secret } = sent
  const bytes =
    body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: '127.0.0.1',
        port,
        path,
        method: sent.method ?? 'POST',
        agent: sent.agent ?? false,
        headers: {
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(bytes === null ? {} : { 'content-length': String(Buffer.byteLength(bytes)) }),
          ...sent.headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const reply = { status: response.statusCode ?? 0, headers: response.headers, text, body: parse(text) }
          requireContract(path, sent.method ?? 'POST', reply)
          resolve(reply)
        })
      },
    )
    request.on('error', reject)
    request.end(bytes ?? undefined)
  })
}

/** The response schema for each path of the validation API. */
const RESPONSES: Record<string, z.ZodType> = {
  '/api/v2/license/validate': verdictV2,
  '/api/v2/license/validate/batch': validateBatchResponse,
  '/api/v1/validate': verdictV1,
  '/api/v1/activate': verdictV1,
  '/api/v1/deactivate': deactivateResponse,
}

/** Fails the test when a response of the validation API differs from the contract. */
function requireContract(path: string, method: string, { status, body, text }: Reply): void {
  const schema = RESPONSES[path]
  if (schema === undefined || method !== 'POST' || isBehindBalancer) return
  const isVerdict = status === 200 || (path === '/api/v2/license/validate' && status === 400)
  const error = path.startsWith('/api/v2/') ? validationErrorV2 : validationErrorV1
  const parsed = (isVerdict ? schema : error).safeParse(body)
  if (!parsed.success) throw new Error(`${path} sent ${status} ${text}: ${parsed.error.message}`)
  if (isVerdict && path === '/api/v2/license/validate') expect(body).toMatchObject({ status })
}

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

export interface Wanted {
  /** Returns whether the expected data has arrived. Without this function, the peer is expected to close the connection. */
  enough?: (text: string) => boolean
  /** The time to wait for unexpected data after `enough` returned true. */
  silentMs?: number
  /** The timeout of the whole call. */
  limitMs?: number
}

/** Writes raw bytes. Returns the data that arrives until the peer closes, or until the expected data has arrived. */
export function raw(
  port: number,
  bytes: string | Uint8Array,
  { enough = () => false, silentMs = 100, limitMs = 10_000 }: Wanted = {},
): Promise<{ text: string; closed: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    let closed = false
    const finish = (): void => {
      clearTimeout(limit)
      clearTimeout(silence)
      socket.destroy()
      resolve({ text, closed })
    }
    const limit = setTimeout(finish, limitMs)
    let silence: NodeJS.Timeout | undefined
    socket.on('data', (data) => {
      text += data.toString('latin1')
      clearTimeout(silence)
      if (enough(text)) silence = setTimeout(finish, silentMs)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      closed = true
      finish()
    })
    socket.write(bytes)
  })
}

/** Returns a predicate for texts that contain this number of responses with complete bodies. */
export const responses =
  (count: number) =>
  (text: string): boolean => {
    let whole = 0
    for (let rest = text; ; whole++) {
      const head = rest.indexOf('\r\n\r\n') + 4
      const length = Number(/^content-length: (\d+)\r\n/im.exec(rest.slice(0, head))?.[1])
      if (head < 4 || !(rest.length >= head + length)) return whole >= count
      rest = rest.slice(head + length)
    }
  }

/** Waits until `holds` returns true, up to the timeout of the test. */
export async function until(holds: () => Promise<boolean> | boolean, everyMs = 10): Promise<void> {
  while (!(await holds())) await sleep(everyMs)
}

/** Matches any string in an expected body. */
export const someText: unknown = expect.any(String)

export const someNumber: unknown = expect.any(Number)

export const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern)
