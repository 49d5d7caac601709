/**
 * Measures the time from a committed change until all validators enforce it. The changes are access rules, revocations of
 * licenses and revocations of API keys, in turn. Each validator is polled with pauses of about a millisecond, so that
 * polling takes little processor time.
 */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import {
  insertApiKey,
  insertCustomer,
  insertLicense,
  insertOrganization,
  insertProduct,
  insertRule,
} from '@keyward/testkit'
import type pg from 'pg'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { planCores } from '../harness/cores.ts'
import { type Server, startKeyward } from '../harness/servers.ts'
import { percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { rawRequest } from '../load/checks.ts'
import { runAtRate } from '../load/fixed-rate.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/propagation.ts [options]

  --changes N       changes to make (default 1000)
  --validators N    validators, each a process with one worker (default 3)
  --gap MS          pause between changes (default 5)
  --load N          other checks a second that each validator serves meanwhile (default 0)
  --help

Writes bench/results/propagation.json, with --load bench/results/propagation-loaded.json.`

const DEFAULTS = { changes: 1_000, validators: 3, gap: 5, load: 0 }
const KINDS = ['rule', 'revocation', 'key revocation'] as const
type Kind = (typeof KINDS)[number]

/** A change, and the check whose response it changes. */
interface Case {
  kind: Kind
  make: (pool: pg.Pool) => Promise<unknown>
  request: Buffer
  /** The text that a response contains once the change is enforced. */
  enforced: string
}

interface Sample {
  kind: Kind
  /** The times until the last validator enforces the change: since the change was sent, and since its commit returned. */
  sinceSentMs: number
  sinceCommitMs: number
}

await runMain('propagation', async () => {
  const options = numbersFrom(HELP, DEFAULTS)
  if (options !== null) await withPostgres((url) => run(url, options))
})

async function run(url: string, options: typeof DEFAULTS): Promise<void> {
  const pool = createPool(url, { name: 'propagation', max: 2 })
  try {
    const cases = await prepare(pool, options.changes)
    const unchanged = await prepareCase(pool, await insertOrganization(pool), 'rule')
    const plan = { ...planCores(), pinned: false }
    const validators = await Promise.all(Array.from({ length: options.validators }, () => startKeyward(url, plan)))
    const load = startLoad(validators, unchanged.request, options.load)
    const samples = await measure(pool, cases, validators, options.gap).finally(() => load.end())
    report(samples, validators.length, await load.perSecond)
  } finally {
    await pool.end()
  }
}

/** Inserts one organization, and a license and an API key per change, so that no change hides another. */
async function prepare(pool: pg.Pool, count: number): Promise<Case[]> {
  const organizationId = await insertOrganization(pool)
  const cases: Case[] = []
  for (let i = 0; i < count; i++) cases.push(await prepareCase(pool, organizationId, KINDS[i % KINDS.length]!))
  return cases
}

async function prepareCase(pool: pg.Pool, organizationId: string, kind: Kind): Promise<Case> {
  const license = await insertLicense(pool, {
    organizationId,
    productId: await insertProduct(pool, { organizationId }),
    customerId: await insertCustomer(pool, { organizationId }),
  })
  const { id: credentialId, secret } = await insertApiKey(pool, { organizationId })
  const check = { apiKey: secret, licenseKey: license.key, machineId: 'machine', forwardedFor: null }
  const request = rawRequest({ kind: 'known', ...check }, 'v2', 'localhost')
  return { kind, request, ...changeOf(kind, { organizationId, licenseId: license.id, credentialId }) }
}

function changeOf(
  kind: Kind,
  ids: { organizationId: string; licenseId: string; credentialId: string },
): Pick<Case, 'make' | 'enforced'> {
  const { organizationId, licenseId, credentialId } = ids
  switch (kind) {
    case 'rule':
      return {
        enforced: '"BLACKLISTED"',
        make: (pool) => insertRule(pool, { organizationId, licenseId, type: 'HWID', value: 'machine' }),
      }
    case 'revocation':
      return {
        enforced: '"REVOKED"',
        make: (pool) => pool.query(`update licenses set status = 'revoked' where id = $1`, [licenseId]),
      }
    case 'key revocation':
      return {
        enforced: '"UNAUTHORIZED"',
        make: (pool) => pool.query(`update credentials set revoked_at = now() where id = $1`, [credentialId]),
      }
    default:
      return kind satisfies never
  }
}

interface Load {
  end(): void
  /** The number of checks a second that all validators served together. Resolves after `end`. */
  perSecond: Promise<number>
}

/** Sends each validator checks that no change affects, at a fixed rate. */
function startLoad(validators: Server[], request: Buffer, ratePerSecond: number): Load {
  const stopping = new AbortController()
  const runs = (ratePerSecond === 0 ? [] : validators).map(({ url }) =>
    runAtRate({
      url,
      nextRequest: () => request,
      ratePerSecond,
      connections: 16,
      durationMs: 3_600_000,
      sleeps: true,
      signal: stopping.signal,
    }),
  )
  const perSecond = Promise.all(runs).then((all) => all.reduce((sum, { perSecond: one }) => sum + one, 0))
  return { end: () => stopping.abort(), perSecond }
}

async function measure(pool: pg.Pool, cases: Case[], validators: Server[], gapMs: number): Promise<Sample[]> {
  const sockets = validators.map(({ port }) => connect(port, '127.0.0.1').setNoDelay(true))
  const samples: Sample[] = []
  for (const [i, { kind, make, request, enforced }] of cases.entries()) {
    for (const socket of sockets)
      if (!(await send(socket, request)).includes('"VALID"')) throw new Error(`change ${i} was enforced too early`)
    const watching = sockets.map(async (socket) => {
      while (!(await send(socket, request)).includes(enforced)) await sleep(1)
      return performance.now()
    })
    const sentAtMs = performance.now()
    await make(pool)
    const committedAtMs = performance.now()
    const enforcedAtMs = Math.max(...(await Promise.all(watching)))
    const sinceCommitMs = Math.max(0, enforcedAtMs - committedAtMs)
    samples.push({ kind, sinceSentMs: enforcedAtMs - sentAtMs, sinceCommitMs })
    await sleep(gapMs)
  }
  for (const socket of sockets) socket.destroy()
  return samples
}

/** Sends one request and returns the response, which is small enough to arrive in one piece. */
function send(socket: Socket, request: Buffer): Promise<string> {
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
      sinceCommitMs: percentiles(chosen.map(({ sinceCommitMs }) => sinceCommitMs)),
      sinceSentMs: percentiles(chosen.map(({ sinceSentMs }) => sinceSentMs)),
    }
  })
  const beside = checksPerSecond === 0 ? '' : ` beside ${Math.round(checksPerSecond)} other checks a second`
  console.log(`Milliseconds until all of ${validators} validators enforce a change${beside}:`)
  for (const { kind, changes, sinceCommitMs: commit, sinceSentMs: sent } of rows)
    console.log(
      `  ${kind.padEnd(15)} ${String(changes).padStart(5)} changes, ` +
        `from commit p50 ${commit.p50} p99 ${commit.p99} max ${commit.max}, ` +
        `from sending p50 ${sent.p50} p99 ${sent.p99} max ${sent.max}`,
    )
  const name = checksPerSecond === 0 ? 'propagation' : 'propagation-loaded'
  console.log(writeResult(name, { validators, checksPerSecond, rows }))
}
