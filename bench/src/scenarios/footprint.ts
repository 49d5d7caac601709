/**
 * Measures the time until a validator is ready, with and without an index file, and its memory per license, for a second worker and
 * during a reload.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { judge } from '../harness/goals.ts'
import { shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { loadsOf, type Server, startKeyward } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'
import { residentBytes } from '../harness/usage.ts'

interface Start {
  readyMs: number
  bytes: number
}

interface Restart extends Start {
  /** The largest memory of the process during a reload, divided by the memory before it. */
  reloadRatio: number
}

const SETTLE_MS = 5_000
const SAMPLE_MS = 20

export const footprint: Scenario = {
  name: 'footprint',
  summary: 'start to ready with 1 M licenses and 100 k rules; memory per license, of a second worker and of a reload',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const url = await openShape(bench.postgres, shape, bench.log)
    const smallUrl = await openShape(bench.postgres, shapeFor(bench, 1000, 10), bench.log)
    const repeats = bench.quick ? 1 : 3
    const one: Start[] = []
    const two: Start[] = []
    const small: Start[] = []
    const restarts: Restart[] = []
    for (let n = 0; n < repeats; n += 1) {
      bench.signal.throwIfAborted()
      one.push(await start(bench, url, 1))
      two.push(await start(bench, url, 2))
      small.push(await start(bench, smallUrl, 1))
      restarts.push(await restart(bench, url))
      const [first, second] = [one.at(-1)!, restarts.at(-1)!]
      bench.log(
        `start ${n + 1}/${repeats}   ready in ${seconds(first)} s, from an index file in ${seconds(second)} s; memory of a reload ${second.reloadRatio.toFixed(2)} x`,
      )
    }
    return describe({ one, two, small, restarts }, shape.licenses)
  },
}

async function start(bench: Bench, databaseUrl: string, workers: number): Promise<Start> {
  const server = await startKeyward(databaseUrl, bench.plan, { workers })
  try {
    return { readyMs: server.readyMs, bytes: await settledBytes(bench, server) }
  } finally {
    await server.stop()
  }
}

/** Starts a validator that writes an index file, measures a reload, and starts the validator again from its file. */
async function restart(bench: Bench, databaseUrl: string): Promise<Restart> {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-index-'))
  const env = { INDEX_FILE: join(folder, 'index') }
  try {
    const reloadRatio = await reloadMemory(bench, databaseUrl, env)
    const second = await startKeyward(databaseUrl, bench.plan, { env })
    try {
      // A validator that did not use its file has loaded all rows. One that did compares them later with Postgres.
      if ((await loadsOf(second.adminPort)) !== 0) throw new Error('the validator did not start from its index file')
      return { readyMs: second.readyMs, bytes: bytesOf(second), reloadRatio }
    } finally {
      await second.stop()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts a validator and forces a reload. Returns its largest memory during the reload, divided by the memory before. */
async function reloadMemory(bench: Bench, databaseUrl: string, env: Record<string, string>): Promise<number> {
  const server = await startKeyward(databaseUrl, bench.plan, { env })
  const client = new pg.Client({ connectionString: databaseUrl })
  try {
    await client.connect()
    return await largestDuringReload(bench, server, client)
  } finally {
    await client.end()
    await server.stop()
  }
}

async function largestDuringReload(bench: Bench, server: Server, client: pg.Client): Promise<number> {
  const before = await settledBytes(bench, server)
  const loads = await loadsOf(server.adminPort)
  await client.query('select void_change_log()')
  let most = before
  const timer = setInterval(() => (most = Math.max(most, bytesOf(server))), SAMPLE_MS)
  try {
    while ((await loadsOf(server.adminPort)) === loads) {
      bench.signal.throwIfAborted()
      await sleep(SAMPLE_MS * 10)
    }
  } finally {
    clearInterval(timer)
  }
  return most / before
}

/** Returns the memory after a pause, in which the process releases the memory that only the load needed. */
async function settledBytes(bench: Bench, server: Server): Promise<number> {
  await sleep(bench.quick ? 500 : SETTLE_MS)
  return bytesOf(server)
}

function bytesOf(server: Server): number {
  const bytes = residentBytes(server.pid)
  if (bytes === null) throw new Error('this system does not report the memory of a process')
  return bytes
}

function seconds({ readyMs }: Start): string {
  return (readyMs / 1000).toFixed(2)
}

interface Measured {
  one: Start[]
  two: Start[]
  small: Start[]
  restarts: Restart[]
}

function describe({ one, two, small, restarts }: Measured, licenses: number): Outcome {
  const perLicense = summarize(one.map(({ bytes }, n) => (bytes - small[n]!.bytes) / licenses))
  const worker = summarize(two.map(({ bytes }, n) => (bytes - one[n]!.bytes) / 1e6))
  const ready = summarize(one.map(({ readyMs }) => readyMs / 1000))
  const median = (starts: Start[]): number => summarize(starts.map(({ bytes }) => bytes / 2 ** 20)).median
  return {
    title: 'Start and memory',
    question: 'How soon is a new validator ready, and how much memory does it need?',
    headlines: [
      { figure: `${ready.median.toFixed(1)} s`, text: 'from the start of a validator to its first check' },
      { figure: `${Math.round(median(one))} MiB`, text: 'of memory for a million licenses with three machines each' },
    ],
    goals: [
      judge('start', ready),
      judge('restart', summarize(restarts.map(({ readyMs }) => readyMs / 1000))),
      judge('bytesPerLicense', perLicense),
      judge('workerMemory', worker),
      judge('reloadMemory', summarize(restarts.map(({ reloadRatio }) => reloadRatio))),
    ],
    charts: [
      {
        kind: 'bars',
        title: 'Memory of the process',
        unit: 'MiB',
        log: false,
        bars: [
          { label: '1 k licenses, 1 worker', value: median(small), ours: true },
          { label: '1 M licenses, 1 worker', value: median(one), ours: true },
          { label: '1 M licenses, 2 workers', value: median(two), ours: true },
        ],
      },
      {
        kind: 'dots',
        title: '1 M licenses, 3 M machines and 100 k rules, from start to ready',
        unit: 's',
        rows: [
          { label: 'start', values: one.map(({ readyMs }) => readyMs / 1000), goal: 8, direction: 'at most' },
          {
            label: 'start from an index file',
            values: restarts.map(({ readyMs }) => readyMs / 1000),
            goal: 2,
            direction: 'at most',
          },
        ],
      },
    ],
    notes: [
      'Bytes per license are the memory with 1 M licenses minus the memory with 1 k, divided by the number of licenses. They include 3 machines per license and 100 k rules.',
      'The start is measured from the spawn of the process. On two or more cores, validator and Postgres have a core each.',
    ],
    figures: { one, two, small, restarts },
  }
}
