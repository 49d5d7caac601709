// Measures how long a committed change takes to be enforced on every one of several validators: access rules, revocations
// of licenses, and revocations of API keys, in turn. Each validator is asked again and again while the change is made, with a pause of about a
// millisecond, so that the asking does not take the processor from what is measured.
// `node bench/src/programs/propagation.ts --help` lists what can be set.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { createPool, createSecret, uuidv7 } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import { LAUNCH } from '@keyward/process'
import type pg from 'pg'

import { type Child, startChild, stopChildren } from '../harness/children.ts'
import { runPaced } from '../load/fixed-rate.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/propagation.ts [options]

  --changes N       how many changes to make (default 1000)
  --validators N    child processes, one worker each (default 3)
  --gap MS          pause between changes (default 5)
  --load N          other checks that each validator answers meanwhile, a second (default 0)
  --help`

const MAIN = fileURLToPath(new URL('../../../services/validator/src/main.ts', import.meta.url))
const KINDS = ['rule', 'revocation', 'key revocation'] as const
type Kind = (typeof KINDS)[number]

/** One change, and the request whose answer it changes. */
interface Case {
  kind: Kind
  make(pool: pg.Pool): Promise<unknown>
  request: Buffer
  /** What the answer contains once the change is enforced. */
  enforced: string
}

interface Sample {
  kind: Kind
  /** Until the last validator enforces it, from the moment the statement was sent, and from the acknowledged commit. */
  sinceSentMs: number
  sinceCommitMs: number
}

await main()

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      changes: { type: 'string', default: '1000' },
      validators: { type: 'string', default: '3' },
      gap: { type: 'string', default: '5' },
      load: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const folder = mkdtempSync(join(tmpdir(), 'keyward-propagation-'))
  await chmod(folder, 0o755)
  const postgres = await startPostgres({ dataFolder: join(folder, 'data') })
  try {
    await migrate(postgres.url)
    const pool = createPool(postgres.url, { name: 'propagation', max: 2 })
    const cases = await prepare(pool, Number(values.changes) + 1)
    const unchanged = cases.pop()
    const validators = await Promise.all(
      Array.from({ length: Number(values.validators) }, () => startValidator(postgres.url)),
    )
    const load = loadWith(validators, unchanged, Number(values.load))
    const samples = await measure(pool, cases, validators, Number(values.gap)).finally(() => load.end())
    const checksPerSecond = await load.perSecond
    await pool.end()
    report(samples, validators.length, checksPerSecond)
  } finally {
    await stopChildren()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startValidator(databaseUrl: string): Promise<Child> {
  const child = await startChild({
    file: MAIN,
    launch: LAUNCH.validator,
    env: {
      DATABASE_URL: databaseUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '1',
      LOG_LEVEL: 'warn',
    },
  })
  while ((await fetch(`http://127.0.0.1:${child.adminPort}/readyz`)).status !== 200) await sleep(20)
  return child
}

/** One organization, and for each change its own license and API key, so that no change hides another. */
async function prepare(pool: pg.Pool, count: number): Promise<Case[]> {
  const [organization, product, customer] = [uuidv7(), uuidv7(), uuidv7()]
  await pool.query(`insert into organizations (id, name, plan) values ($1, 'Bench', 'STANDARD')`, [organization])
  await pool.query(`insert into products (id, organization_id, name) values ($1, $2, 'P')`, [product, organization])
  await pool.query(`insert into customers (id, organization_id, email) values ($1, $2, 'c@example.com')`, [
    customer,
    organization,
  ])
  const cases: Case[] = []
  for (let i = 0; i < count; i++) {
    const [license, credential] = [uuidv7(), uuidv7()]
    const { secret, prefix, hash } = createSecret('API_KEY')
    await pool.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type) values ($1, $2, $3, $4, $5, 'PERPETUAL')`,
      [license, organization, product, customer, `KEY-${i}`],
    )
    await pool.query(
      `insert into credentials (id, organization_id, kind, name, prefix, secret_hash) values ($1, $2, 'API_KEY', 'k', $3, $4)`,
      [credential, organization, prefix, hash],
    )
    const kind = KINDS[i % KINDS.length] ?? 'rule'
    const change = changeOf(kind, { organization, license, credential })
    cases.push({ kind, request: requestOf(`KEY-${i}`, secret), ...change })
  }
  return cases
}

function changeOf(
  kind: Kind,
  ids: { organization: string; license: string; credential: string },
): Pick<Case, 'make' | 'enforced'> {
  switch (kind) {
    case 'rule':
      return {
        enforced: '"BLACKLISTED"',
        make: (pool) =>
          pool.query(
            `insert into access_rules (id, organization_id, kind, type, value, scope, license_id, created_by)
             values ($1, $2, 'BLACKLIST', 'HWID', 'machine', 'LICENSE', $3, '{}')`,
            [uuidv7(), ids.organization, ids.license],
          ),
      }
    case 'revocation':
      return {
        enforced: '"REVOKED"',
        make: (pool) => pool.query(`update licenses set status = 'revoked' where id = $1`, [ids.license]),
      }
    case 'key revocation':
      return {
        enforced: '"UNAUTHORIZED"',
        make: (pool) => pool.query(`update credentials set revoked_at = now() where id = $1`, [ids.credential]),
      }
    default:
      return kind satisfies never
  }
}

function requestOf(license: string, secret: string): Buffer {
  const body = JSON.stringify({ license, fingerprint: 'machine' })
  return Buffer.from(
    `POST /api/v2/license/validate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
}

interface Load {
  end(): void
  /** How many checks all validators answered a second; known once it has ended. */
  perSecond: Promise<number>
}

/** Checks at a fixed rate that no change touches. */
function loadWith(validators: Child[], check: Case | undefined, ratePerSecond: number): Load {
  if (check === undefined || ratePerSecond === 0) return { end: () => undefined, perSecond: Promise.resolve(0) }
  const stopping = new AbortController()
  const runs = validators.map(({ port }) =>
    runPaced({
      url: new URL(`http://127.0.0.1:${port}`),
      nextRequest: () => check.request,
      ratePerSecond,
      connections: 16,
      durationMs: 3_600_000,
      sleeps: true,
      signal: stopping.signal,
    }),
  )
  const perSecond = Promise.all(runs).then((all) => all.reduce((sum, run) => sum + run.perSecond, 0))
  return { end: () => stopping.abort(), perSecond }
}

async function measure(pool: pg.Pool, cases: Case[], validators: Child[], gapMs: number): Promise<Sample[]> {
  const sockets = validators.map(({ port }) => connect(port, '127.0.0.1').setNoDelay(true))
  const samples: Sample[] = []
  for (const [i, change] of cases.entries()) {
    for (const socket of sockets)
      if (!(await ask(socket, change.request)).includes('"VALID"'))
        throw new Error(`Change ${i} was enforced too early`)
    const watching = sockets.map(async (socket) => {
      while (!(await ask(socket, change.request)).includes(change.enforced)) await sleep(1)
      return performance.now()
    })
    const sentAtMs = performance.now()
    await change.make(pool)
    const committedAtMs = performance.now()
    const enforcedAtMs = Math.max(...(await Promise.all(watching)))
    samples.push({
      kind: change.kind,
      sinceSentMs: enforcedAtMs - sentAtMs,
      sinceCommitMs: Math.max(0, enforcedAtMs - committedAtMs),
    })
    await sleep(gapMs)
  }
  for (const socket of sockets) socket.destroy()
  return samples
}

/** The answer to one request; answers are small enough to arrive in one piece. */
function ask(socket: Socket, request: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('data', (data) => {
      socket.off('error', reject)
      resolve(data.toString('latin1'))
    })
    socket.write(request)
  })
}

function report(samples: Sample[], validators: number, checksPerSecond: number): void {
  const rows = [...KINDS, 'all' as const].map((kind) => {
    const chosen = samples.filter((sample) => kind === 'all' || sample.kind === kind)
    return {
      kind,
      changes: chosen.length,
      sinceCommitMs: percentiles(chosen.map((sample) => sample.sinceCommitMs)),
      sinceSentMs: percentiles(chosen.map((sample) => sample.sinceSentMs)),
    }
  })
  const beside = checksPerSecond === 0 ? '' : ` beside ${Math.round(checksPerSecond)} other checks a second`
  console.log(`Until all of ${validators} validators enforce a change${beside}, ms:`)
  for (const { kind, changes, sinceCommitMs, sinceSentMs } of rows)
    console.log(
      `  ${kind.padEnd(15)} ${String(changes).padStart(5)} changes, from commit p50 ${sinceCommitMs.p50} p99 ${sinceCommitMs.p99} max ${sinceCommitMs.max}, ` +
        `from sending p50 ${sinceSentMs.p50} p99 ${sinceSentMs.p99} max ${sinceSentMs.max}`,
    )
  const name = checksPerSecond === 0 ? 'propagation' : 'propagation-loaded'
  console.log(writeResult(name, { validators, checksPerSecond, rows }))
}

function percentiles(values: number[]): { p50: number; p99: number; max: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) * 100) / 100
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}
