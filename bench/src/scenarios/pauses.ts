/** Measures how long garbage collection stops a thread of the validator, under load and while rules change. */

import { fileURLToPath } from 'node:url'

import { startChild } from '../harness/children.ts'
import { pinPrefix } from '../harness/cores.ts'
import { parseCollection, type Collection } from '../harness/gc-trace.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { startKeyward, type Server } from '../harness/servers.ts'
import { summarize, type Summary } from '../harness/stats.ts'
import { runAtRate } from '../load/fixed-rate.ts'
import { createSupply } from '../load/supply.ts'

const MINUTES = 10
const RATE = 20_000
/** The number of collections of each kind that are stored and drawn. */
const LONGEST = 100
const CHANGER = fileURLToPath(new URL('../harness/rule-changer.ts', import.meta.url))

export const pauses: Scenario = {
  name: 'pauses',
  summary: `garbage-collection pauses, 3 M licenses, ${MINUTES} minutes of load and changes`,
  run: async (bench) => {
    const shape = shapeFor(bench, 3_000_000, 1_000_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const keyward = await startKeyward(databaseUrl, bench.plan, {
      nodeArguments: ['--trace-gc'],
      keepLine: (line) => parseCollection(line) !== null,
    })
    const changer = await startChild({
      file: CHANGER,
      env: { RULE_CHANGES: '100' },
      prefix: pinPrefix(bench.plan.postgres, bench.plan),
    })
    try {
      changer.send(databaseUrl)
      const before = keyward.lines.length
      const durationMs = bench.quick ? 5000 : MINUTES * 60_000
      const checks = knownChecks(shape, { count: CHECK_COUNT / 4 })
      const outcome = await runAtRate({
        url: keyward.url,
        nextRequest: createSupply(checks, 'v2', keyward.url),
        ratePerSecond: RATE,
        connections: bench.connections,
        durationMs,
        onProgress: progressOf(bench),
        signal: bench.signal,
      })
      return describe(collectionsOf(keyward, 0), collectionsOf(keyward, before), outcome.latency, durationMs)
    } finally {
      await Promise.all([keyward.stop(), changer.stop()])
    }
  },
}

function collectionsOf(server: Server, from: number): Collection[] {
  return server.lines
    .slice(from)
    .map(parseCollection)
    .filter((collection) => collection !== null)
}

function progressOf(bench: Bench): (responses: number) => void {
  let seconds = 0
  return (responses) => {
    seconds += 1
    if (seconds % 30 === 0) bench.log(`${seconds} s   ${responses.toLocaleString('en-US')} checks`)
  }
}

/** The collections of one kind: their number and the longest ones. */
interface Kind {
  kind: string
  count: number
  pauseMs: Summary
  longest: Collection[]
}

function byKind(collections: Collection[]): Kind[] {
  return [...new Set(collections.map(({ kind }) => kind))].map((kind) => {
    const own = collections.filter((collection) => collection.kind === kind)
    const longest = own.toSorted((a, b) => b.pauseMs - a.pauseMs).slice(0, LONGEST)
    return { kind, count: own.length, pauseMs: summarize(own.map(({ pauseMs }) => pauseMs)), longest }
  })
}

function describe(all: Collection[], underLoad: Collection[], latency: unknown, durationMs: number): Outcome {
  const longest = Math.max(0, ...underLoad.map(({ pauseMs }) => pauseMs))
  const kinds = byKind(underLoad)
  return {
    title: 'Garbage-collection pauses',
    question: 'Does garbage collection stop a thread for a noticeable time while millions of licenses are loaded?',
    goals: [judge('pause', summarize([longest]))],
    charts: [
      {
        kind: 'dots',
        title: `The ${LONGEST} longest collections of each kind in ${(durationMs / 60_000).toFixed(1)} minutes of load and changes, main thread and worker`,
        unit: 'ms',
        rows: kinds.map(({ kind, count, longest: shown }) => ({
          label: `${kind} (${count})`,
          values: shown.map(({ pauseMs }) => pauseMs),
          goal: 10,
          direction: 'at most',
        })),
      },
    ],
    notes: [
      `${RATE.toLocaleString('en-US')} checks and 100 rule changes a second. Collections while loading are in the result file only.`,
    ],
    figures: {
      longestMs: longest,
      collections: all.length,
      underLoad: kinds,
      loading: byKind(all.slice(0, all.length - underLoad.length)),
      latency,
    },
  }
}
