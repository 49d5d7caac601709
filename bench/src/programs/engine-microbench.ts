/**
 * Measures the decision engine without a server: loading, memory, time per verdict by kind of check, insertions while the
 * machine set grows, tries compared with `net.BlockList`, and reads during writes.
 */

import { randomBytes } from 'node:crypto'
import { BlockList } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

import {
  type Change,
  CODES,
  createCheck,
  createIndex,
  createVerdict,
  type IndexReader,
  type IndexWriter,
  openIndex,
  type SharedIndex,
} from '@keyward/engine'

import { fill, KINDS } from '../data/engine-checks.ts'
import {
  licenseId,
  licenses,
  machineOf,
  machines,
  ORGANIZATIONS,
  organizationId,
  prefixes,
  rules,
  scatter,
  type Sizes,
  tenants,
  writeKey,
} from '../data/engine-rows.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'

const HELP = `node bench/src/programs/engine-microbench.ts [options]

  --licenses N      licenses in the index (default 1000000)
  --machines N      machines per license (default 3)
  --rules N         access rules (default 100000)
  --prefixes N      networks in the trie that is compared with net.BlockList (default 1000000)
  --inserts N       machines inserted one by one (default 4000000)
  --checks N        checks per measurement (default 1000000)
  --help`

const DEFAULTS: Sizes = {
  licenses: 1_000_000,
  machines: 3,
  rules: 100_000,
  prefixes: 1_000_000,
  inserts: 4_000_000,
  checks: 1_000_000,
}
const NOW = Date.UTC(2026, 0, 1)
const BATCH = 10_000
const STRETCH = 500

function print(what: string, value: number, unit: string): void {
  const digits = value < 10 ? 2 : value < 1000 ? 1 : 0
  process.stdout.write(`${what.padEnd(58)} ${value.toFixed(digits).padStart(12)} ${unit}\n`)
}

/** Applies changes in batches. Returns the seconds that `apply` took, excluding the creation of the changes. */
function load(writer: IndexWriter, changes: Generator<Change>): number {
  let seconds = 0
  let batch: Change[] = []
  const flush = (): void => {
    const start = performance.now()
    const [rejected] = writer.apply(batch)
    seconds += (performance.now() - start) / 1000
    if (rejected !== undefined) throw new Error(rejected.reason)
    batch = []
  }
  for (const change of changes) {
    batch.push(change)
    if (batch.length === BATCH) flush()
  }
  flush()
  return seconds
}

/** Returns the nanoseconds per run as the median over short stretches, so that disturbances of the machine hardly affect the result. */
function nanoseconds(count: number, run: (n: number) => void): number {
  const times: number[] = []
  const stretch = Math.min(count, STRETCH)
  for (let from = 0; from < count; from += stretch) {
    const start = performance.now()
    for (let n = from; n < from + stretch; n++) run(n)
    times.push(((performance.now() - start) * 1e6) / stretch)
  }
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? NaN
}

function organizationRows(reader: IndexReader): number[] {
  return Array.from({ length: ORGANIZATIONS }, (_, n) => reader.findOrganization(organizationId(n)))
}

function measureVerdicts(reader: IndexReader, sizes: Sizes): void {
  const organizations = organizationRows(reader)
  const check = createCheck()
  const verdict = createVerdict()
  for (const [name, { code, prepare }] of Object.entries(KINDS)) {
    let other = 0
    const preparing = nanoseconds(sizes.checks, (n) => prepare(check, organizations, sizes, n))
    const all = nanoseconds(sizes.checks, (n) => {
      prepare(check, organizations, sizes, n)
      reader.decide(check, NOW, verdict)
      if (CODES[verdict.code] !== code) other++
    })
    print(`verdict: ${name}`, all - preparing, other === 0 ? 'ns' : `ns (${other} with another code!)`)
  }
}

function measureLoading(sizes: Sizes): IndexWriter {
  const before = process.memoryUsage().rss
  const writer = createIndex({ hashKey: randomBytes(16) })
  const parts = { tenants: tenants(sizes), licenses: licenses(sizes), machines: machines(sizes), rules: rules(sizes) }
  let total = 0
  for (const [name, changes] of Object.entries(parts)) {
    const seconds = load(writer, changes)
    total += seconds
    print(`load: ${name}`, seconds, 's')
  }
  print('load: all', total, 's')
  const { usedBytes, bytes, rows } = writer.stats()
  for (const [name, count] of Object.entries(bytes)) print(`memory: ${name}`, count / 2 ** 20, 'MiB')
  const ruleBytes = bytes.rules! + bytes.trieNodes! + bytes.scopes! + bytes.byRule!
  print('memory: bytes per license, with its customer and machines', (usedBytes - ruleBytes) / sizes.licenses, 'bytes')
  print('memory: bytes per license, rules included', usedBytes / sizes.licenses, 'bytes')
  print('memory: bytes per machine', bytes.machines! / rows.machine, 'bytes')
  globalThis.gc?.()
  print('memory: growth of the process', (process.memoryUsage().rss - before) / 2 ** 20, 'MiB')
  return writer
}

function measureInserts(sizes: Sizes): void {
  const writer = createIndex({ hashKey: randomBytes(16) })
  const few = { ...sizes, licenses: 1000, machines: 0 }
  load(writer, tenants(few))
  load(writer, licenses(few))
  let worst = 0
  let total = 0
  const times: number[] = []
  for (let n = 0; n < sizes.inserts; n++) {
    const change: Change[] = [
      { entity: 'machine', licenseId: licenseId(n % 1000), machineId: machineOf(n, 1), held: true, used: 0 },
    ]
    const start = performance.now()
    writer.apply(change)
    const ms = performance.now() - start
    total += ms
    if (ms > worst) worst = ms
    if (ms > 1) times.push(ms)
  }
  print(`insert: mean of ${sizes.inserts} machines, a section each`, (total * 1e6) / sizes.inserts, 'ns')
  print('insert: worst', worst, 'ms')
  print('insert: over 1 ms', times.length, 'times')
}

function measureTries(sizes: Sizes): void {
  const writer = createIndex({ hashKey: randomBytes(16) })
  const few = { ...sizes, licenses: 100, machines: 1 }
  load(writer, tenants(few))
  load(writer, licenses(few))
  const seconds = load(writer, prefixes(sizes.prefixes))
  print(`trie: insertion of ${sizes.prefixes} prefixes, each`, (seconds * 1e9) / sizes.prefixes, 'ns')
  const reader = openIndex(writer.shared)
  const [organization = -1] = organizationRows(reader)
  const check = createCheck()
  const verdict = createVerdict()
  fill(check, [], few, 0, false)
  check.organization = organization
  writeKey(0, check.licenseKey)
  const decide = (n: number): void => {
    check.a0 = scatter(n) | 0
    reader.decide(check, NOW, verdict)
  }
  const withAddress = nanoseconds(sizes.checks, decide)
  check.addressFamily = 0
  const without = nanoseconds(sizes.checks, decide)
  print(`trie: all covers among ${sizes.prefixes} prefixes`, withAddress - without, 'ns')
  print('trie: whole verdict with it', withAddress, 'ns')
  measureBlockList(withAddress - without)
}

function measureBlockList(trieNs: number): void {
  const list = new BlockList()
  const dotted = (word: number): string => [24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join('.')
  for (const change of prefixes(10_000)) {
    if (change.entity !== 'rule' || change.row?.type !== 'IP') continue
    list.addSubnet(dotted(change.row.network.words[0]), change.row.network.prefixLength)
  }
  const blockListNs = nanoseconds(200, (n) => void list.check(dotted(scatter(n + 1_000_000))))
  print('trie: net.BlockList with 10,000 prefixes, first match only', blockListNs, 'ns')
  print('trie: times faster', blockListNs / trieNs, '')
}

async function measureContention(writer: IndexWriter, sizes: Sizes): Promise<void> {
  for (const sectionsPerSecond of [0, 1000]) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { shared: writer.shared, sizes } })
    const state = { done: false }
    const measured = new Promise<number>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    }).finally(() => (state.done = true))
    let n = 0
    const start = performance.now()
    while (!state.done) {
      const due = ((performance.now() - start) / 1000) * sectionsPerSecond
      for (; n < due; n++) writeSomething(writer, n, sizes)
      await new Promise((resolve) => setImmediate(resolve))
    }
    print(`reading in a thread, ${sectionsPerSecond} write sections a second`, await measured, 'ns')
    await worker.terminate()
  }
}

function writeSomething(writer: IndexWriter, n: number, sizes: Sizes): void {
  const license = scatter(n >>> 1) % sizes.licenses
  const machineId = machineOf(license, 777)
  writer.apply([
    { entity: 'machine', licenseId: licenseId(license), machineId, held: n % 2 === 0, used: sizes.machines },
  ])
}

interface ReaderTask {
  shared: SharedIndex
  sizes: Sizes
}

function readInWorker({ shared, sizes }: ReaderTask): void {
  const reader = openIndex(shared)
  const organizations = organizationRows(reader)
  const check = createCheck()
  const verdict = createVerdict()
  const prepare = (n: number): number => fill(check, organizations, sizes, n, true)
  const preparing = nanoseconds(sizes.checks, prepare)
  const all = nanoseconds(sizes.checks, (n) => {
    prepare(n)
    reader.decide(check, NOW, verdict)
  })
  parentPort?.postMessage(all - preparing)
}

async function main(): Promise<void> {
  const sizes = numbersFrom(HELP, DEFAULTS)
  if (sizes === null) return
  const writer = measureLoading(sizes)
  measureVerdicts(openIndex(writer.shared), sizes)
  await measureContention(writer, sizes)
  measureTries(sizes)
  measureInserts(sizes)
}

function isReaderTask(data: unknown): data is ReaderTask {
  return typeof data === 'object' && data !== null && 'shared' in data && 'sizes' in data
}

if (isMainThread) await runMain('engine-microbench', main)
else if (isReaderTask(workerData)) readInWorker(workerData)
