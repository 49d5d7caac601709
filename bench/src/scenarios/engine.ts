/**
 * Measures the engine without a server: nanoseconds per kind of verdict, and the engine's trie against net.BlockList.
 * Runs programs/engine-microbench.ts on the server's core and draws the printed figures.
 */

import { fileURLToPath } from 'node:url'

import { LAUNCH } from '@keyward/runtime'

import { runToEnd } from '../harness/children.ts'
import { pinPrefix } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import type { Scenario } from '../harness/scenario.ts'
import { summarize } from '../harness/stats.ts'

const PROGRAM = fileURLToPath(new URL('../programs/engine-microbench.ts', import.meta.url))
const SIZES = ['--licenses', '1000000', '--rules', '1000000', '--prefixes', '1000000']
const QUICK_SIZES = '--licenses 20000 --rules 10000 --prefixes 20000 --inserts 20000 --checks 20000'.split(' ')
const REPEATS = 3

export interface Figure {
  name: string
  value: number
  unit: string
}

/** Parses lines such as `verdict: unknown key      171.2 ns`. */
export function parseFigures(output: string): Figure[] {
  return output.split('\n').flatMap((line) => {
    const [, name = '', value = '', unit = ''] = /^(\S.*?)\s{2,}([\d.]+) ?(.*)$/.exec(line) ?? []
    return name === '' ? [] : [{ name, value: Number(value), unit: unit.trim() }]
  })
}

/** Returns whether a figure is the time in which the trie finds all networks with an address. */
function isSearch({ name }: Figure): boolean {
  return name.startsWith('trie: all covers')
}

export const engine: Scenario = {
  name: 'engine',
  summary: 'the decision engine alone: time per verdict by kind of check, and its trie against net.BlockList',
  run: async (bench) => {
    const runs: Figure[][] = []
    for (let n = 0; n < (bench.quick ? 1 : REPEATS); n += 1) {
      bench.signal.throwIfAborted()
      const [sizes, prefix] = [bench.quick ? QUICK_SIZES : SIZES, pinPrefix(bench.plan.server, bench.plan)]
      runs.push(parseFigures(await runToEnd(PROGRAM, sizes, prefix, LAUNCH.validator)))
      bench.log(`run ${n + 1} done`)
    }
    const valuesOf = (name: string): number[] =>
      runs.flatMap((run) => run.filter((each) => each.name === name).map(({ value }) => value))
    const verdicts = [...new Set(runs.flat().map(({ name }) => name))].filter((name) => name.startsWith('verdict: '))
    const worst = runs.map((run) =>
      Math.max(...run.filter(({ name }) => name.startsWith('verdict: ')).map(({ value }) => value)),
    )
    return {
      title: 'The engine alone',
      question: 'What does a verdict cost before any socket is involved?',
      goals: [
        judge('verdict', summarize(worst)),
        judge('covers', summarize(runs.flatMap((run) => run.filter(isSearch).map(({ value }) => value)))),
        judge('blockList', summarize(valuesOf('trie: times faster'))),
      ],
      charts: [
        {
          kind: 'bars',
          title: 'One verdict',
          unit: 'ns',
          log: false,
          bars: verdicts.map((name) => {
            const { median, low, high } = summarize(valuesOf(name))
            return { label: name.slice('verdict: '.length), value: median, low, high, ours: true }
          }),
        },
      ],
      notes: ['net.BlockList returns only whether any network covers an address; the trie finds all networks that do.'],
      figures: { runs },
    }
  },
}
