/**
 * Changes access rules at a fixed rate by SQL: adds an address rule and removes it, repeatedly. It runs as a separate process, so that its
 * work delays no measurement. The environment variable RULE_CHANGES is the number of changes a second. An IPC message with the URL of a
 * database starts changes in that database and ends those in the previous one.
 */

import { createPool, uuidv7 } from '@keyward/database'
import type { Pool } from 'pg'

const ratePerSecond = Number(process.env['RULE_CHANGES'] ?? '100')
let pool: Pool | null = null
let organizationId = ''
let changes = 0
let added: string | null = null
let failed = false

process.on('message', (message) => void connectTo(String(message)))
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
process.send?.({ type: 'listening', port: 0 })
schedule(performance.now())

async function connectTo(databaseUrl: string): Promise<void> {
  await pool?.end()
  pool = null
  const opened = createPool(databaseUrl, { name: 'keyward-bench-changes', max: 4 })
  // The second organization has address rules.
  const { rows } = await opened.query<{ id: string }>('select id from organizations order by id offset 1 limit 1')
  if (rows[0] === undefined) throw new Error('the database has fewer than two organizations')
  organizationId = rows[0].id
  await opened.query(`delete from access_rules where organization_id = $1 and note = 'bench change'`, [organizationId])
  added = null
  pool = opened
}

/** Schedules the next change by the time at which this one was due, so that a slow change does not lower the rate. */
function schedule(dueMs: number): void {
  const next = dueMs + 1000 / ratePerSecond
  setTimeout(
    () => {
      change().catch(reportOnce)
      schedule(next)
    },
    Math.max(0, next - performance.now()),
  )
}

async function change(): Promise<void> {
  if (pool === null) return
  changes += 1
  const id = added
  if (id !== null) {
    added = null
    await pool.query('delete from access_rules where id = $1', [id])
    return
  }
  const fresh = uuidv7()
  await pool.query(
    `insert into access_rules (id, organization_id, kind, type, value, scope, note, created_by)
     values ($1, $2, 'BLACKLIST', 'IP', convert_to($3, 'UTF8'), 'ORGANIZATION', 'bench change', '{"type":"bench"}')`,
    [
      fresh,
      organizationId,
      `10.${changes % 200}.${Math.floor(changes / 200) % 200}.${Math.floor(changes / 40_000) % 200}`,
    ],
  )
  added = fresh
}

function reportOnce(error: unknown): void {
  if (!failed) console.error(`changing a rule failed: ${error instanceof Error ? error.message : String(error)}`)
  failed = true
}
