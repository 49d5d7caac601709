/**
 * The memory of an index, shared between threads: a control block, a region for each slab, and two regions for each hash table. A region
 * has its final length from the start, so it is never enlarged or copied. The operating system provides memory only for pages that are
 * written.
 */

export const REGION_NAMES = [
  'organizations',
  'credentials',
  'products',
  'customers',
  'licenses',
  'extensions',
  'values',
  'scopes',
  'rules',
  'trieNodes',
  'byId',
  'byIdOverflow',
  'byKey',
  'byKeyOverflow',
  'byRule',
  'byRuleOverflow',
  'byValue',
  'byValueOverflow',
  'machines',
  'machinesOverflow',
] as const

export type RegionName = (typeof REGION_NAMES)[number]

/** The memory that another thread needs to read an index. This object can be posted to a worker (structured cloning). */
export interface SharedIndex {
  /** The key of `KeyedHash`: four words. */
  readonly hashKey: readonly number[]
  readonly control: SharedArrayBuffer
  readonly regions: Readonly<Record<RegionName, SharedArrayBuffer>>
}

// The control block. Words that change often are in separate cache lines (16 words).
/** The version of the seqlock. */
export const VERSION = 0
/** The mark of the last reload, 0 or 1. Only the writer uses it. */
export const CURRENT_MARK = 1
const FIRST_HEADER = 16
const HEADER_WORDS = 16
const CONTROL_BYTES = 4 * (FIRST_HEADER + REGION_NAMES.length * HEADER_WORDS)

const MIB = 2 ** 20
/**
 * The factor by which a small index is smaller than a large one. A small index has 9 MiB, enough for thousands of rows. It is small because
 * allocators may fill all of it with zeros.
 */
const SMALL_PART = 1024
/** The largest factor by which the address space of a large index may be reduced. */
const LEAST_PART = 64
/**
 * The offset of a region in its block, in bytes. Allocators on Linux place a large block 16 bytes behind the start of a page. At this
 * offset, a record of 64 bytes is therefore in one cache line. On other systems a record may span two lines, which costs only time.
 */
const SKIPPED_BYTES = 48

/**
 * The address space of a large index. It suffices for 16 M licenses and customers, 8 M extensions, values, scopes and rules, and 50 M
 * machines.
 */
const LARGE_BYTES: Record<RegionName, number> = {
  organizations: 128 * MIB,
  credentials: 128 * MIB,
  products: 128 * MIB,
  customers: 512 * MIB,
  licenses: 1024 * MIB,
  extensions: 256 * MIB,
  values: 512 * MIB,
  scopes: 512 * MIB,
  rules: 512 * MIB,
  trieNodes: 1024 * MIB,
  byId: 768 * MIB,
  byIdOverflow: 512 * MIB,
  byKey: 512 * MIB,
  byKeyOverflow: 256 * MIB,
  byRule: 256 * MIB,
  byRuleOverflow: 128 * MIB,
  byValue: 128 * MIB,
  byValueOverflow: 64 * MIB,
  machines: 1024 * MIB,
  machinesOverflow: 512 * MIB,
}

/** The address space in bytes that a large index reserves where the system allows it. */
export const LARGE_INDEX_BYTES = Object.values(LARGE_BYTES).reduce((sum, bytes) => sum + bytes)

/** One region of the shared memory, as 32-bit words and as doubles. */
export class Region {
  readonly words: Int32Array
  readonly doubles: Float64Array

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer, SKIPPED_BYTES)
    this.doubles = new Float64Array(buffer, SKIPPED_BYTES)
  }

  /** Returns whether the region has at least this number of bytes. */
  holds(bytes: number): boolean {
    return bytes <= this.words.byteLength
  }
}

/** One thread's views of all regions of an index. */
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

/** Returns a text that changes whenever the layout of the control block or of the regions changes. */
export function describeMemory(): string {
  return [FIRST_HEADER, HEADER_WORDS, SKIPPED_BYTES, ...REGION_NAMES].join(' ')
}

/** Returns the first bytes of a region. `used` is the number of bytes that its slab or table uses. */
export function startOfRegion(buffer: SharedArrayBuffer, used: number): Uint8Array {
  return new Uint8Array(buffer, 0, SKIPPED_BYTES + used)
}

/**
 * Returns the offset of a region's header in the control block. A header has 16 words for the state of the region's
 * slab or table.
 */
export function headerOf(name: RegionName): number {
  return FIRST_HEADER + REGION_NAMES.indexOf(name) * HEADER_WORDS
}

/**
 * Reserves the memory of a new index. The index is smaller where the system provides less than a large index requests
 * (`vm.overcommit_memory=2`, or a single block larger than the machine's memory). The sizes are tried in ascending
 * order, because the memory of a failed attempt is freed only by the next garbage collection.
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
    extensions: make('extensions'),
    values: make('values'),
    scopes: make('scopes'),
    rules: make('rules'),
    trieNodes: make('trieNodes'),
    byId: make('byId'),
    byIdOverflow: make('byIdOverflow'),
    byKey: make('byKey'),
    byKeyOverflow: make('byKeyOverflow'),
    byRule: make('byRule'),
    byRuleOverflow: make('byRuleOverflow'),
    byValue: make('byValue'),
    byValueOverflow: make('byValueOverflow'),
    machines: make('machines'),
    machinesOverflow: make('machinesOverflow'),
  }
}
