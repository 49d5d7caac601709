/**
 * Changes access rules by SQL, and requests license files from management, at fixed rates. It runs as a separate process, so that its work
 * delays no measurement. `BACKGROUND` contains the rates and the license as JSON. An IPC message with a `Work` as JSON replaces the work:
 * rules then change in that database, by turns an addition and a removal. The output contains the first error of each kind.
 */

import { createPool, uuidv7 } from '@keyward/database'
import type { Pool } from 'pg'
import { z } from 'zod'

const settings = z
  .object({
    changesPerSecond: z.number().positive(),
    filesPerSecond: z.number().positive(),
    managementPort: z.number(),
    apiKey: z.string(),
    licenseKey: z.string(),
    machineId: z.string(),
  })
  .parse(JSON.parse(process.env['BACKGROUND'] ?? ''))
export type Settings = typeof settings

const workSchema = z.object({ databaseUrl: z.string(), requestsFiles: z.boolean() })
export type Work = z.infer<typeof workSchema>

let pool: Pool | null = null
let organizationId = ''
let requestsFiles = false
let changes = 0
let added: string | null = null
const failed = new Set<string>()

process.on('message', (message) => void change(workSchema.parse(JSON.parse(String(message)))))
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
process.send?.({ type: 'listening', port: 0 })
repeat('a change of a rule', settings.changesPerSecond, changeRule)
repeat('a request for a file', settings.filesPerSecond, requestFile)

async function change(work: Work): Promise<void> {
  const previous = pool
  pool = null
  requestsFiles = work.requestsFiles
  await previous?.end()
  const opened = createPool(work.databaseUrl, { name: 'keyward-bench-changes', max: 4 })
  // The second organization has address rules.
  const { rows } = await opened.query<{ id: string }>('select id from organizations order by id offset 1 limit 1')
  if (rows[0] === undefined) throw new Error('the database has fewer than two organizations')
  organizationId = rows[0].id
  await opened.query(`delete from access_rules where organization_id = $1 and note = 'bench change'`, [organizationId])
  added = null
  pool = opened
}

/** Runs `work` at a fixed rate. The next time depends on the time at which this run was due, so a slow run does not lower the rate. */
function repeat(name: string, perSecond: number, work: () => Promise<void>): void {
  let dueMs = performance.now()
  const next = (): void => {
    dueMs += 1000 / perSecond
    setTimeout(
      () => {
        work().catch((error: unknown) => {
          if (!failed.has(name)) console.error(`${name} failed: ${String(error)}`)
          failed.add(name)
        })
        next()
      },
      Math.max(0, dueMs - performance.now()),
    )
  }
  next()
}

async function changeRule(): Promise<void> {
  if (pool === null) return
  changes += 1
  const id = added
  if (id !== null) {
    added = null
    await pool.query('delete from access_rules where id = $1', [id])
    return
  }
  const fresh = uuidv7()
  const address = `10.${changes % 200}.${Math.floor(changes / 200) % 200}.${Math.floor(changes / 40_000) % 200}`
  await pool.query(
    `insert into access_rules (id, organization_id, kind, type, value, scope, note, created_by)
     values ($1, $2, 'BLACKLIST', 'IP', convert_to($3, 'UTF8'), 'ORGANIZATION', 'bench change', '{"type":"SYSTEM"}')`,
    [fresh, organizationId, address],
  )
  added = fresh
}

async function requestFile(): Promise<void> {
  if (!requestsFiles) return
  const { managementPort, apiKey, licenseKey, machineId } = settings
  const number = Math.floor(Math.random() * 2 ** 20)
  const response = await fetch(`http://127.0.0.1:${managementPort}/api/v1/licenses/file`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      // One of a million addresses, because the requests of one address are limited.
      'x-client-ip': `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`,
    },
    body: JSON.stringify({ licenseKey, fingerprint: machineId }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`status ${response.status}: ${text.slice(0, 400)}`)
}
