/** Starts a management service with a separate database, and creates callers of its API. */

import {
  createTestDatabase,
  startBalancer,
  startValidatorProcess,
  type TestDatabase,
  type ValidatorProcess,
} from '@keyward/testkit'

import { environment } from '../../src/config.ts'
import { startManagement } from '../../src/server.ts'

export const operatorToken = 'operator-token-of-these-tests-only'
export const masterKey = '5e'.repeat(32)

export interface ApiResponse {
  status: number
  headers: Headers
  text: string
  /** The parsed body, or null when it is not JSON. */
  body: unknown
}

export interface CallOptions {
  token?: string | null
  body?: unknown
  /** Text or bytes that are sent unchanged instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

export type Caller = (method: string, path: string, options?: CallOptions) => Promise<ApiResponse>

export interface Harness {
  database: TestDatabase
  origin: string
  adminOrigin: string
  call: Caller
  /** Returns a caller with another default credential. */
  as(token: string | null): Caller
  close(): Promise<void>
}

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return null
  }
}

function createCaller(origin: string, defaultToken: string | null): Caller {
  return async (method, path, options = {}) => {
    const token = options.token === undefined ? defaultToken : options.token
    const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
    const response = await fetch(path.startsWith('/') ? origin + path : `${origin}/api/v1/${path}`, {
      method,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body !== undefined && { body }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parse(text) }
  }
}

/** Starts a harness with a validator, which decides evaluations and license files for apps. */
export async function startHarnessWithValidator(
  env: Record<string, string> = {},
): Promise<Harness & { validator: ValidatorProcess }> {
  const harness = await startHarness(env)
  const validator = await startValidatorProcess(harness.database)
  const close = async (): Promise<void> => {
    await validator.stop()
    await harness.close()
  }
  return { ...harness, validator, close }
}

export async function startHarness(
  env: Record<string, string> = {},
  changes: { maxConnections?: number } = {},
): Promise<Harness> {
  const database = await createTestDatabase()
  const config = environment.parse({
    DATABASE_URL: database.managementUrl,
    MANAGEMENT_PORT: '0',
    MANAGEMENT_ADMIN_PORT: '0',
    MANAGEMENT_RATE_LIMIT: '1000000',
    OPERATOR_TOKEN: operatorToken,
    MASTER_KEY: masterKey,
    LOG_LEVEL: 'fatal',
    ...env,
  })
  const management = await startManagement({ ...config, drainMs: 0, ...changes })
  const balancer = await startBalancer('management', management)
  const origin = `http://127.0.0.1:${balancer.port}`
  return {
    database,
    origin,
    adminOrigin: `http://127.0.0.1:${management.adminPort}`,
    call: createCaller(origin, operatorToken),
    as: (token) => createCaller(origin, token),
    async close() {
      await management.close()
      await balancer.close()
      await database.drop()
    },
  }
}
