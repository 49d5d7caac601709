/**
 * Computes the tables of bench/notes/scaling.md from the measured inputs. The title of a table states whether its figures
 * are simulated. All randomness is seeded, so the same inputs produce the same tables.
 */

import { simulateClaims } from './claims-model.ts'
import type { Measured } from './measured-inputs.ts'
import { simulatePropagation } from './propagation-model.ts'

export interface Table {
  title: string
  columns: string[]
  rows: string[][]
}

/** Returns a generator of numbers from 0 to less than 1 (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`

export function allTables(measured: Measured): Table[] {
  return [listeners(measured), regions(measured), claims(measured), sizes(measured), costs()]
}

function listeners({ readMs }: Measured): Table {
  const rows: string[][] = []
  for (const validators of [3, 10, 30, 100, 300, 1_000])
    for (const changesPerSecond of [10, 100]) {
      const common = { validators, changesPerSecond, readMs, cores: 4, roundTripMs: 0.5, seconds: 30 }
      const direct = simulatePropagation({ ...common, next: seeded(1) })
      const relayed = simulatePropagation({ ...common, relays: 3, forwardMs: 0.02, next: seeded(1) })
      rows.push([
        String(validators),
        String(changesPerSecond),
        ms(direct.p50Ms),
        ms(direct.p99Ms),
        percent(direct.load),
        ms(relayed.p99Ms),
        percent(relayed.load),
      ])
    }
  return {
    title: 'From commit to the last validator, simulated: Postgres with 4 cores for reading the log, one network',
    columns: [
      'validators',
      'changes a second',
      'p50',
      'p99',
      'load of the 4 cores',
      'p99 with 3 relays',
      'load with 3 relays',
    ],
    rows,
  }
}

function regions({ readMs }: Measured): Table {
  const places = [
    ['the same data centre', 0.5],
    ['another zone', 2],
    ['another region of the continent', 25],
    ['across an ocean', 90],
    ['the other side of the world', 250],
  ] as const
  const rows = places.map(([place, roundTripMs]) => {
    const common = { validators: 12, changesPerSecond: 10, readMs, cores: 4, roundTripMs, seconds: 60 }
    const report = simulatePropagation({ ...common, next: seeded(2) })
    return [place, ms(roundTripMs), ms(report.p50Ms), ms(report.p99Ms)]
  })
  return {
    title: 'From commit to 12 validators at a distance from the primary, simulated',
    columns: ['where the validators are', 'round trip', 'p50', 'p99'],
    rows,
  }
}

function claims({ statementMs, claimMs }: Measured): Table {
  const disks = [
    ['local NVMe', 0.1],
    ['network disk', 2],
    ['synchronous standby in another zone', 4],
    ['synchronous standby in another region', 30],
  ] as const
  const rows = disks.flatMap(([disk, commitMs]) =>
    [100, 1_000, 10_000].map((claimsPerSecond) => {
      const common = {
        validators: 12,
        cores: 4,
        statementMs,
        claimMs,
        commitMs,
        roundTripMs: 0.5,
        mostInStatement: 256,
      }
      const report = simulateClaims({ ...common, claimsPerSecond, seconds: 20, next: seeded(3) })
      return [disk, ms(commitMs), String(claimsPerSecond), ms(report.p50Ms), ms(report.p99Ms), report.batch.toFixed(1)]
    }),
  )
  return {
    title: 'Wait of a new machine for its slot, simulated: 12 validators, Postgres with 4 cores for claims',
    columns: ['commit waits for', 'commit time', 'new machines a second', 'p50', 'p99', 'claims per statement'],
    rows,
  }
}

function sizes({ bytesPerLicense, loadRowsPerSecond }: Measured): Table {
  const rows = [100_000, 1_000_000, 10_000_000, 100_000_000].map((licenses) => {
    const gibibytes = (licenses * bytesPerLicense) / 2 ** 30
    const minutes = (licenses * 4) / loadRowsPerSecond / 60
    const cells = Math.max(1, Math.ceil(licenses / 10_000_000))
    return [
      licenses.toLocaleString('en'),
      `${gibibytes < 10 ? gibibytes.toFixed(2) : Math.round(gibibytes)} GiB`,
      minutes < 2 ? `${Math.round(minutes * 60)} s` : `${Math.round(minutes)} min`,
      String(cells),
      cells === 1
        ? 'the same'
        : `${(((licenses / cells) * bytesPerLicense) / 2 ** 30).toFixed(2)} GiB, ${Math.round(minutes / cells)} min`,
    ]
  })
  return {
    title:
      'One validator by number of licenses, three machines each: computed from the measured bytes and rows a second',
    columns: ['licenses', 'index', 'load', 'cells of 10 million', 'per validator in a cell'],
    rows,
  }
}

/**
 * Returns the cost of a billion checks. The price of 0.04 per core and hour is an assumption. Two thirds of the core time
 * are idle, so two of three validators may fail.
 */
function costs(): Table {
  const pricePerCoreHour = 0.04
  const rows = [5_000, 10_000, 25_000, 50_000, 100_000].map((perCore) => {
    const coreHours = 1e9 / (perCore / 3) / 3_600
    return [perCore.toLocaleString('en'), coreHours.toFixed(1), (coreHours * pricePerCoreHour).toFixed(2)]
  })
  return {
    title: 'A billion checks, computed: cores kept at a third of what they can do, 0.04 a core and hour',
    columns: ['checks a second per core', 'core hours', 'cost'],
    rows,
  }
}

export function printTable({ title, columns, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [`**${title}**`, '', line(columns), line(columns.map(() => '---')), ...rows.map(line), ''].join('\n')
}
