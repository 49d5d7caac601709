/** Measures the time from a committed change until all of several validators enforce it, over an otherwise empty database. */

import { createPool } from '@keyward/database'
import { insertOrganization } from '@keyward/testkit'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { planCores } from '../harness/cores.ts'
import { KINDS, measureChanges, prepareCase, prepareCases, type Sample } from '../harness/propagation.ts'
import { type Server, startKeyward } from '../harness/servers.ts'
import { percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
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

await runMain('propagation', async () => {
  const options = numbersFrom(HELP, DEFAULTS)
  if (options !== null) await withPostgres((url) => run(url, options))
})

async function run(url: string, options: typeof DEFAULTS): Promise<void> {
  const pool = createPool(url, { name: 'propagation', max: 2 })
  try {
    const cases = await prepareCases(pool, await insertOrganization(pool), options.changes)
    const unchanged = await prepareCase(pool, await insertOrganization(pool), 'rule')
    const plan = { ...planCores(), pinned: false }
    const validators = await Promise.all(Array.from({ length: options.validators }, () => startKeyward(url, plan)))
    const load = startLoad(validators, unchanged.request, options.load)
    const samples = await measureChanges(pool, cases, validators, options.gap).finally(() => load.end())
    report(samples, validators.length, await load.perSecond)
  } finally {
    await pool.end()
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
