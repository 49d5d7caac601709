/** Measures the time until a validator is ready, and its memory per license and for a second worker. */

import { judge } from '../harness/goals.ts'
import { shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'
import { residentBytes } from '../harness/usage.ts'

interface Start {
  readyMs: number
  bytes: number
}

export const footprint: Scenario = {
  name: 'footprint',
  summary: 'start to ready with 1 M licenses and 100 k rules; memory per license and of a second worker',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const url = await openShape(bench.postgres, shape, bench.log)
    const smallUrl = await openShape(bench.postgres, shapeFor(bench, 1000, 10), bench.log)
    const repeats = bench.quick ? 1 : 3
    const one: Start[] = []
    const two: Start[] = []
    const small: Start[] = []
    for (let n = 0; n < repeats; n += 1) {
      bench.signal.throwIfAborted()
      one.push(await start(bench, url, 1))
      two.push(await start(bench, url, 2))
      small.push(await start(bench, smallUrl, 1))
      bench.log(`start ${n + 1}/${repeats}   ready in ${(one.at(-1)!.readyMs / 1000).toFixed(2)} s`)
    }
    return describe(one, two, small, shape.licenses)
  },
}

async function start(bench: Bench, databaseUrl: string, workers: number): Promise<Start> {
  const server = await startKeyward(databaseUrl, bench.plan, { workers })
  try {
    // Waits until the memory that only the load needed is returned to the system.
    await new Promise((resolve) => setTimeout(resolve, bench.quick ? 500 : 5000))
    const bytes = residentBytes(server.pid)
    if (bytes === null) throw new Error('this system does not report the memory of a process')
    return { readyMs: server.readyMs, bytes }
  } finally {
    await server.stop()
  }
}

function describe(one: Start[], two: Start[], small: Start[], licenses: number): Outcome {
  const perLicense = summarize(one.map(({ bytes }, n) => (bytes - small[n]!.bytes) / licenses))
  const worker = summarize(two.map(({ bytes }, n) => (bytes - one[n]!.bytes) / 1e6))
  const ready = summarize(one.map(({ readyMs }) => readyMs / 1000))
  const median = (starts: Start[]): number => summarize(starts.map(({ bytes }) => bytes / 2 ** 20)).median
  return {
    title: 'Start and memory',
    question: 'How soon is a new validator ready, and how much memory does it need?',
    goals: [judge('start', ready), judge('bytesPerLicense', perLicense), judge('workerMemory', worker)],
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
        rows: [{ label: 'start', values: one.map(({ readyMs }) => readyMs / 1000), goal: 8, direction: 'at most' }],
      },
    ],
    notes: [
      'Bytes per license are the memory with 1 M licenses minus the memory with 1 k, divided by the number of licenses. They include 3 machines per license and 100 k rules.',
      'The start is measured from the spawn of the process. On two or more cores, validator and Postgres have a core each.',
    ],
    figures: { one, two, small },
  }
}
