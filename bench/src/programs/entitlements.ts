/**
 * Measures the cost of entitlements (docs/api.md#v13): the memory of the index per license, and the processor time of a check with and
 * without a request for them. The licenses have no entitlements, equal entitlements, or different ones. A validator caches merged
 * entitlements. This program merges them each time, so its figures are upper bounds.
 */

import { effectiveEntitlements } from '@keyward/contract/entitlements'
import {
  type Change,
  createCheck,
  createEntitlementsView,
  createIndex,
  createVerdict,
  type IndexReader,
  type LicenseChange,
  openIndex,
  type ProductChange,
} from '@keyward/engine'

import { KEY_BYTES, licenses, organizationId, scatter, type Sizes, tenants, writeKey } from '../data/engine-rows.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'

const HELP = `node bench/src/programs/entitlements.ts [options]

  --licenses N      licenses in the index (default 1000000)
  --checks N        checks per measurement (default 500000)
  --rounds N        measurements of each kind, of which the median counts (default 5)
  --help`

const BATCH = 10_000
const KINDS = ['none', 'shared', 'each'] as const
const text = new TextEncoder()
const DEFAULTS = text.encode('{"seats": 1, "edition": "standard", "support": "mail"}')

function entitlementsOf(kind: (typeof KINDS)[number], n: number): Uint8Array | null {
  if (kind === 'none') return null
  return text.encode(`{"seats": ${kind === 'shared' ? 50 : n}, "export": true, "edition": "professional"}`)
}

function load(sizes: Sizes, kind: (typeof KINDS)[number]) {
  const writer = createIndex({ hashKey: new Uint8Array(16) })
  let batch: Change[] = []
  const add = (change: Change): void => {
    if (batch.push(change) === BATCH) writer.apply(batch.splice(0))
  }
  for (const change of tenants(sizes)) add(change.entity === 'product' ? withDefaults(change, kind) : change)
  let n = 0
  for (const change of licenses(sizes)) add(change.entity === 'license' ? withOwn(change, kind, n++) : change)
  writer.apply(batch)
  batch = []
  return writer
}

function withDefaults(change: ProductChange, kind: (typeof KINDS)[number]): Change {
  return change.row === null || kind === 'none' ? change : { ...change, row: { ...change.row, entitlements: DEFAULTS } }
}

function withOwn(change: LicenseChange, kind: (typeof KINDS)[number], n: number): Change {
  return change.row === null ? change : { ...change, row: { ...change.row, entitlements: entitlementsOf(kind, n) } }
}

const decoder = new TextDecoder()
const view = createEntitlementsView()

function parse(bytes: Uint8Array, length: number): Record<string, unknown> {
  const value: unknown = length === 0 ? {} : JSON.parse(decoder.decode(bytes.subarray(0, length)))
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Returns the effective entitlements of the license in a row as JSON. */
function entitlementsIn(reader: IndexReader, row: number, generation: number): Uint8Array {
  if (!reader.entitlements(row, generation, view, () => false)) throw new Error('The row has another license.')
  const product = parse(view.productBytes, view.productLength)
  return text.encode(JSON.stringify(effectiveEntitlements(product, parse(view.licenseBytes, view.licenseLength))))
}

/** Returns the processor time of a check in nanoseconds. */
function measure(
  reader: IndexReader,
  organizations: readonly number[],
  count: number,
  checks: number,
  asks: boolean,
): number {
  const check = createCheck()
  const verdict = createVerdict()
  let bytes = 0
  const before = process.cpuUsage()
  for (let i = 0; i < checks; i++) {
    const n = scatter(i) % count
    check.organization = organizations[n % organizations.length]!
    writeKey(n, check.licenseKey)
    check.licenseKeyLength = KEY_BYTES
    reader.decide(check, 0, verdict)
    if (asks) bytes += entitlementsIn(reader, verdict.license, verdict.licenseGeneration).length
  }
  const { user, system } = process.cpuUsage(before)
  if (asks === (bytes === 0)) throw new Error('The checks found no license.')
  return ((user + system) * 1000) / checks
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

function main(): Promise<void> {
  const options = numbersFrom(HELP, { licenses: 1_000_000, checks: 500_000, rounds: 5 })
  if (options === null) return Promise.resolve()
  const sizes = { ...options, machines: 0, rules: 0, prefixes: 0, inserts: 0 }
  for (const kind of KINDS) {
    const writer = load(sizes, kind)
    const reader = openIndex(writer.shared)
    const organizations = Array.from({ length: 100 }, (_, n) => reader.findOrganization(organizationId(n)))
    const ns = (asks: boolean): string => {
      const rounds = Array.from({ length: options.rounds }, () =>
        measure(reader, organizations, options.licenses, options.checks, asks),
      )
      return `${Math.round(median(rounds))} ns`
    }
    const perLicense = (writer.stats().usedBytes / options.licenses).toFixed(1)
    console.log(`${kind}: ${perLicense} bytes of index per license, check ${ns(false)}, check that asks ${ns(true)}`)
  }
  return Promise.resolve()
}

await runMain('entitlements', main)
