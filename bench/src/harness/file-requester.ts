/**
 * Requests license files from a management service at a fixed rate. It runs as a separate process, so that its work delays no measurement.
 * The environment variables are DATABASE_URL, MANAGEMENT_PORT and FILE_REQUESTS, the number of requests a second. The program creates an
 * organization with one license, and deletes it when it ends. The IPC messages `start` and `stop` start and stop the requests. The output
 * contains the first error.
 */

import { createPool } from '@keyward/database'
import { z } from 'zod'

import { createApps, requestFile } from './file-requests.ts'

const env = z
  .object({
    DATABASE_URL: z.string(),
    MANAGEMENT_PORT: z.coerce.number(),
    FILE_REQUESTS: z.coerce.number().positive(),
  })
  .parse(process.env)

let isRunning = false
let hasFailed = false

const [app] = await createApps(env.DATABASE_URL, env.MANAGEMENT_PORT, 1, 1)
await request()
process.on('message', (message) => (isRunning = message === 'start'))
process.on('disconnect', () => void end())
process.on('SIGTERM', () => void end())
process.send?.({ type: 'listening', port: 0 })
schedule(performance.now())

async function request(): Promise<void> {
  await requestFile(env.MANAGEMENT_PORT, app!.apiKey, app!.licenseKeys[0]!)
}

/** Schedules the next request by the time at which this one was due, so that a slow request does not lower the rate. */
function schedule(dueMs: number): void {
  const next = dueMs + 1000 / env.FILE_REQUESTS
  setTimeout(
    () => {
      if (isRunning) request().catch(reportOnce)
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
  const pool = createPool(env.DATABASE_URL, { name: 'keyward-bench-files', max: 1 })
  await pool.query('delete from organizations where id = $1', [app!.organizationId]).catch(reportOnce)
  process.exit(0)
}
