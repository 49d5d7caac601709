/**
 * The memory of an index: one control block and a region for each kind of thing, shared between threads. A region is as long
 * as it may ever become from the start: the system gives memory to what is written and to nothing else, so there is nothing to
 * grow, to copy or to tell readers of.
 */

export const REGION_NAMES = [
  'organizations',
  'credentials',
  'products',
  'customers',
  'licenses',
  'scopes',
  'rules',
  'trieNodes',
  'byId',
  'byIdOverflow',
  'byKey',
  'byKeyOverflow',
  'byRule',
  'byRuleOverflow',
  'machines',
  'machinesOverflow',
] as const

export type RegionName = (typeof REGION_NAMES)[number]

/** The parts of an index that another thread needs to read it; it survives structured cloning. */
export interface SharedIndex {
  /** Four words. */
  readonly hashKey: readonly number[]
  readonly control: SharedArrayBuffer
  readonly regions: Readonly<Record<RegionName, SharedArrayBuffer>>
}

// The control block: words that change often stand in cache lines (16 words) of their own.
export const VERSION = 0
const FIRST_HEADER = 16
const HEADER_WORDS = 16
const CONTROL_BYTES = 4 * (FIRST_HEADER + REGION_NAMES.length * HEADER_WORDS)

const MIB = 2 ** 20
/** A small index, as a part of a large one: 8 MiB, for some thousands of rows. Allocators may write all of it with zeros. */
const SMALL_PART = 1024
/** What a large index is at least. */
const LEAST_PART = 64
/**
 * A region begins so many bytes into its block. Allocators of Linux put a large block 16 bytes behind the start of a page, and
 * what takes 64 bytes is to lie in one cache line; elsewhere it may take two, which costs time and nothing else.
 */
const SKIPPED_BYTES = 48

/** Address space of a large index: 16 M licenses, customers, 8 M scopes with rules and rules, 50 M machines. */
const LARGE_BYTES: Record<RegionName, number> = {
  organizations: 128 * MIB,
  credentials: 128 * MIB,
  products: 128 * MIB,
  customers: 512 * MIB,
  licenses: 1024 * MIB,
  scopes: 512 * MIB,
  rules: 512 * MIB,
  trieNodes: 1024 * MIB,
  byId: 1024 * MIB,
  byIdOverflow: 512 * MIB,
  byKey: 512 * MIB,
  byKeyOverflow: 256 * MIB,
  byRule: 256 * MIB,
  byRuleOverflow: 128 * MIB,
  machines: 1024 * MIB,
  machinesOverflow: 512 * MIB,
}

export const LARGE_INDEX_BYTES = Object.values(LARGE_BYTES).reduce((sum, bytes) => sum + bytes)

/** One stretch of shared memory, seen as words and as doubles. */
export class Region {
  readonly words: Int32Array
  readonly doubles: Float64Array

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer, SKIPPED_BYTES)
    this.doubles = new Float64Array(buffer, SKIPPED_BYTES)
  }

  holds(bytes: number): boolean {
    return bytes <= this.words.byteLength
  }
}

/** All regions of one index as one thread sees them. */
export class Memory {
  readonly shared: SharedIndex
  readonly control: Int32Array
  readonly regions: Readonly<Record<RegionName, Region>>

  constructor(shared: SharedIndex) {
    this.shared = shared
    this.control = new Int32Array(shared.control)
    this.regions = mapRegions((name) => new Region(shared.regions[name]))
  }
}

/** Where in the control block the bookkeeping of what lives in a region begins: 16 words. */
export function headerOf(name: RegionName): number {
  return FIRST_HEADER + REGION_NAMES.indexOf(name) * HEADER_WORDS
}

/**
 * Where the system promises less (all of it with `vm.overcommit_memory=2`, else a single block larger than its memory), a large
 * index comes out smaller. The sizes are tried upwards, since what a failure leaves behind is given back only by the next
 * garbage collection.
 */
export function createShared(hashKey: readonly number[], reserve: 'small' | 'large'): SharedIndex {
  const control = new SharedArrayBuffer(CONTROL_BYTES)
  if (reserve === 'small') return { hashKey, control, regions: reserveRegions(SMALL_PART) }
  let regions = reserveRegions(LEAST_PART)
  try {
    for (let part = LEAST_PART / 2; part >= 1; part /= 2) regions = reserveRegions(part)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return { hashKey, control, regions }
}

function reserveRegions(part: number): SharedIndex['regions'] {
  return mapRegions((name) => new SharedArrayBuffer(SKIPPED_BYTES + LARGE_BYTES[name] / part))
}

function mapRegions<T>(make: (name: RegionName) => T): Record<RegionName, T> {
  return {
    organizations: make('organizations'),
    credentials: make('credentials'),
    products: make('products'),
    customers: make('customers'),
    licenses: make('licenses'),
    scopes: make('scopes'),
    rules: make('rules'),
    trieNodes: make('trieNodes'),
    byId: make('byId'),
    byIdOverflow: make('byIdOverflow'),
    byKey: make('byKey'),
    byKeyOverflow: make('byKeyOverflow'),
    byRule: make('byRule'),
    byRuleOverflow: make('byRuleOverflow'),
    machines: make('machines'),
    machinesOverflow: make('machinesOverflow'),
  }
}
