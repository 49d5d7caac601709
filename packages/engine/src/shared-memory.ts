/**
 * The memory of an index: one control block and a region for each kind of thing, all shared between threads and grown
 * in place. A region's address space is reserved at once, its memory is taken in bounded steps, so nothing is ever
 * copied or replaced. Regions are used through views of fixed length, since views that track the length are several
 * times slower; a generation number in the control block tells readers to remake theirs.
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
const GENERATION = 16
const FIRST_HEADER = 32
const HEADER_WORDS = 16
const CONTROL_BYTES = 4 * (FIRST_HEADER + REGION_NAMES.length * HEADER_WORDS)

const MIB = 2 ** 20
const GROWTH_MIN_BYTES = 64 * 1024
const GROWTH_MAX_BYTES = 4 * MIB
const INITIAL_BYTES = 4096
/** A region that is larger ends where such a page ends, so that a system that hands them out can use them throughout. */
const HUGE_PAGE_BYTES = 2 * MIB
/** What a small index may grow to, as a part of a large one. */
const SMALL_PART = 64

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

/** One growable stretch of shared memory, seen as words and as doubles. */
export class Region {
  readonly buffer: SharedArrayBuffer
  words: Int32Array
  doubles: Float64Array
  /** For the writer: it grew, and readers have not been told. */
  grown = false

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    this.words = new Int32Array(buffer, 0, buffer.byteLength >> 2)
    this.doubles = new Float64Array(buffer, 0, buffer.byteLength >> 3)
  }

  /** Remakes the views after the buffer has grown. */
  follow(): void {
    const bytes = this.buffer.byteLength
    if (bytes === this.words.byteLength) return
    this.words = new Int32Array(this.buffer, 0, bytes >> 2)
    this.doubles = new Float64Array(this.buffer, 0, bytes >> 3)
  }

  /** Grows the buffer in bounded steps until it holds `bytes`. Throws RangeError when it cannot. */
  ensure(bytes: number): void {
    let size = this.buffer.byteLength
    if (bytes <= size) return
    const limit = this.buffer.maxByteLength
    if (bytes > limit) throw new RangeError('the index is full')
    while (size < bytes) size += Math.min(GROWTH_MAX_BYTES, Math.max(GROWTH_MIN_BYTES, size >> 2))
    const unit = size > HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 64
    this.buffer.grow(Math.min(Math.ceil(size / unit) * unit, limit))
    this.follow()
    this.grown = true
  }
}

/** All regions of one index as one thread sees them. */
export class Memory {
  readonly shared: SharedIndex
  readonly control: Int32Array
  readonly regions: Readonly<Record<RegionName, Region>>
  private generation = 0

  constructor(shared: SharedIndex) {
    this.shared = shared
    this.control = new Int32Array(shared.control)
    this.regions = mapRegions((name) => new Region(shared.regions[name]))
  }

  /** For readers: remakes the views if a region has grown since the last call. */
  follow(): void {
    const generation = this.control[GENERATION]!
    if (generation === this.generation) return
    for (const name of REGION_NAMES) this.regions[name].follow()
    this.generation = generation
  }

  /** For the writer, inside a write section: tells readers if a region has grown. */
  announceGrowth(): void {
    let grown = false
    for (const name of REGION_NAMES) {
      const region = this.regions[name]
      grown ||= region.grown
      region.grown = false
    }
    if (grown) this.control[GENERATION] = (this.control[GENERATION]! + 1) | 0
  }
}

/** Where in the control block the bookkeeping of what lives in a region begins: 16 words. */
export function headerOf(name: RegionName): number {
  return FIRST_HEADER + REGION_NAMES.indexOf(name) * HEADER_WORDS
}

export function createShared(hashKey: readonly number[], reserve: 'small' | 'large'): SharedIndex {
  const part = reserve === 'small' ? SMALL_PART : 1
  return {
    hashKey,
    control: new SharedArrayBuffer(CONTROL_BYTES),
    regions: mapRegions((name) => new SharedArrayBuffer(INITIAL_BYTES, { maxByteLength: LARGE_BYTES[name] / part })),
  }
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
