// Changes access rules at a fixed rate by plain SQL, as a program of its own so that its work delays no measurement: adds an
// address rule, takes it away again, and so on. RULE_CHANGES holds changes a second; a message of a database's address starts it
// there, and null stops it.
import { createPool, uuidv7 } from '@keyward/database'
import type { Pool } from 'pg'

const ratePerSecond = Number(process.env['RULE_CHANGES'] ?? '100')
let pool: Pool | null = null
let organizationId = ''
let changes = 0
let added: string | null = null
let failed = false

process.on('message', (message) => void aim(String(message)))
process.on('disconnect', () => process.exit(0))
process.on('SIGTERM', () => process.exit(0))
process.send?.({ type: 'listening', port: 0 })
schedule(performance.now())

async function aim(databaseUrl: string): Promise<void> {
  await pool?.end()
  pool = null
  const opened = createPool(databaseUrl, { name: 'keyward-bench-changes', max: 4 })
  // The second organization: one that has rules about addresses.
  const { rows } = await opened.query<{ id: string }>('select id from organizations order by id offset 1 limit 1')
  organizationId = rows[0]?.id ?? ''
  await opened.query(`delete from access_rules where organization_id = $1 and note = 'bench change'`, [organizationId])
  added = null
  pool = opened
}

// From the time that a change was due, so that a slow one is made up for.
function schedule(dueMs: number): void {
  const next = dueMs + 1000 / ratePerSecond
  setTimeout(
    () => {
      change().catch(complain)
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

function complain(error: unknown): void {
  if (!failed) console.error(`a rule could not be changed: ${error instanceof Error ? error.message : String(error)}`)
  failed = true
}
