/** Measures the time from a committed change until all of several validators enforce it, over an otherwise empty database. */

import { createPool } from '@keyward/database'
import { insertOrganization } from '@keyward/testkit'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { planCores } from '../harness/cores.ts'
import { KINDS, measureChanges, prepareCase, prepareCases, type Sample } from '../harness/propagation.ts'
import { writeResult } from '../harness/results.ts'
import { startKeyward } from '../harness/servers.ts'
import { percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { runLoad } from '../load/generator.ts'

const HELP = `node bench/src/programs/propagation.ts [options]

  --changes N       changes to make (default 1000)
  --validators N    validators, each a process with one worker (default 3)
  --gap MS          pause between changes (default 5)
  --load N          other checks a second that each validator serves meanwhile (default 0)
  --help

Writes bench/results/propagation.json, with --load bench/results/propagation-loaded.json.`

const DEFAULTS = { changes: 1_000, validators: 3, gap: 5, load: 0 }

await runMain('propagation', async () => {
  const options = numbersFrom(HELP, DEFAULTS)
  if (options !== null) await withPostgres((url) => run(url, options))
})

async function run(databaseUrl: string, options: typeof DEFAULTS): Promise<void> {
  const pool = createPool(databaseUrl, { name: 'propagation', max: 2 })
  try {
    const cases = await prepareCases(pool, await insertOrganization(pool), options.changes)
    const unchanged = await prepareCase(pool, await insertOrganization(pool), 'rule')
    const plan = { ...planCores(), pinned: false }
    const validators = await Promise.all(
      Array.from({ length: options.validators }, () => startKeyward(databaseUrl, plan)),
    )
    const stopping = new AbortController()
    // No change affects the license of these checks.
    const load = { nextRequest: () => unchanged.request, ratePerSecond: options.load, connections: 16, sleeps: true }
    const runs = (options.load === 0 ? [] : validators).map(({ url }) =>
      runLoad({ ...load, url, durationMs: 3_600_000, signal: stopping.signal }),
    )
    const samples = await measureChanges(pool, cases, validators, options.gap).finally(() => stopping.abort())
    const checksPerSecond = (await Promise.all(runs)).reduce((sum, { perSecond }) => sum + perSecond, 0)
    report(samples, validators.length, checksPerSecond)
  } finally {
    await pool.end()
  }
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
  console.table(rows.map(({ kind, changes, ...times }) => ({ kind, changes, ...flat(times) })))
  console.log(
    writeResult(checksPerSecond === 0 ? 'propagation' : 'propagation-loaded', { validators, checksPerSecond, rows }),
  )
}

/** Returns the percentiles of both times as one object, for a table. */
function flat(times: Record<string, object>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(times).flatMap(([name, figures]) =>
      Object.entries(figures).map(([figure, value]) => [`${name} ${figure}`, value]),
    ),
  )
}
