/**
 * Requests license files from a management service at a fixed rate. It runs as a separate process, so that its work delays no measurement.
 * The environment variables are DATABASE_URL, MANAGEMENT_PORT and FILE_REQUESTS, the number of requests a second. The program creates an
 * organization with one license, and deletes it when it ends. The IPC messages `start` and `stop` start and stop the requests. The output
 * contains the first error.
 */

import { createPool } from '@keyward/database'
import { insertLicense, insertMachine } from '@keyward/testkit'
import { z } from 'zod'

import { caller, OPERATOR_TOKEN } from './management-api.ts'

const env = z
  .object({
    DATABASE_URL: z.string(),
    MANAGEMENT_PORT: z.coerce.number(),
    FILE_REQUESTS: z.coerce.number().positive(),
  })
  .parse(process.env)
const FINGERPRINT = 'bench'
const created = z.object({ id: z.string(), apiKey: z.string(), managementToken: z.string() })
const withId = z.object({ id: z.string() })

let isRunning = false
let hasFailed = false

const app = await createApp()
await requestFile()
process.on('message', (message) => (isRunning = message === 'start'))
process.on('disconnect', () => void end())
process.on('SIGTERM', () => void end())
process.send?.({ type: 'listening', port: 0 })
schedule(performance.now())

async function createApp() {
  const pool = createPool(env.DATABASE_URL, { name: 'keyward-bench-files', max: 1 })
  const operator = caller(env.MANAGEMENT_PORT, OPERATOR_TOKEN)
  const organization = (await operator('POST', 'organizations', created, { name: 'Bench', plan: 'STANDARD' })).value
  const vendor = caller(env.MANAGEMENT_PORT, organization.managementToken)
  const product = (await vendor('POST', 'products', withId, { name: 'Product' })).value
  const customer = (await vendor('POST', 'customers', withId, { email: 'files@example.com' })).value
  const ids = { organizationId: organization.id, productId: product.id, customerId: customer.id }
  const license = await insertLicense(pool, ids)
  await insertMachine(pool, { licenseId: license.id, machineId: FINGERPRINT })
  return { pool, organization, licenseKey: license.key }
}

async function requestFile(): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${env.MANAGEMENT_PORT}/api/v1/licenses/file`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${app.organization.apiKey}`,
      'content-type': 'application/json',
      'x-forwarded-for': address(),
    },
    body: JSON.stringify({ licenseKey: app.licenseKey, fingerprint: FINGERPRINT }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`POST /licenses/file returned ${response.status}: ${text}`)
}

/** Returns one of a million addresses, because the requests of one address are limited. */
function address(): string {
  const number = Math.floor(Math.random() * 2 ** 20)
  return `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`
}

/** Schedules the next request by the time at which this one was due, so that a slow request does not lower the rate. */
function schedule(dueMs: number): void {
  const next = dueMs + 1000 / env.FILE_REQUESTS
  setTimeout(
    () => {
      if (isRunning) requestFile().catch(reportOnce)
      schedule(next)
    },
    Math.max(0, next - performance.now()),
  )
}

function reportOnce(error: unknown): void {
  if (!hasFailed)
    console.error(`a request for a file failed: ${error instanceof Error ? error.message : String(error)}`)
  hasFailed = true
}

async function end(): Promise<void> {
  isRunning = false
  await app.pool.query('delete from organizations where id = $1', [app.organization.id]).catch(reportOnce)
  process.exit(0)
}
