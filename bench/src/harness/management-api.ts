/** Starts management processes for measurements, and measures the duration of requests to them. */

import { join } from 'node:path'

import type { z } from 'zod'

import { startChild } from './children.ts'

export const OPERATOR_TOKEN = 'operator-token-of-the-bench-programs'

/** Sends a request and returns the parsed response with its duration in milliseconds. Throws for an error response. */
export type Call = <T>(
  method: string,
  path: string,
  schema: z.ZodType<T>,
  body?: object,
) => Promise<{ value: T; ms: number }>

const ROOT = join(import.meta.dirname, '../../..')
/** The program of the validator. */
export const VALIDATOR_FILE = join(ROOT, 'services/validator/src/main.ts')

/** Starts the management service of this checkout, or of the checkout in the folder `root`. `env` adds variables. */
export function startManagement(
  databaseUrl: string,
  root = ROOT,
  env: Readonly<Record<string, string>> = {},
): ReturnType<typeof startChild> {
  return startChild({
    file: join(root, 'services/management/src/main.ts'),
    env: {
      DATABASE_URL: databaseUrl,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      MANAGEMENT_RATE_LIMIT: '1000000',
      MANAGEMENT_API_KEY_RATE_LIMIT: '1000000',
      TRUSTED_PROXIES: '127.0.0.1',
      OPERATOR_TOKEN,
      MASTER_KEY: '00'.repeat(32),
      LOG_LEVEL: 'warn',
      ...env,
    },
  })
}

export function caller(port: number, token: string): Call {
  return async (method, path, schema, body) => {
    const payload = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const startedMs = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, { method, headers, ...payload })
    const value: unknown = await response.json()
    const ms = performance.now() - startedMs
    if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${JSON.stringify(value)}`)
    return { value: schema.parse(value), ms }
  }
}
