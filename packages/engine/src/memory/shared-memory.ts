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
  /** The journal of the open write section, see `journal.ts`. */
  readonly journal: SharedArrayBuffer
  readonly regions: Readonly<Record<RegionName, SharedArrayBuffer>>
}

// The control block. Words that readers load are not in the cache lines (16 words) that each section changes.
/** The version of the seqlock. */
export const VERSION = 0
/** The mark of the last reload, 0 or 1. Only the writer uses it. */
export const CURRENT_MARK = 1
/**
 * The version of the whole memory, for threads that copy an image. It is odd from the preparation of a section until no thread writes the
 * section any more, because the writer changes its headers during the preparation. A copy is intact if the version was even and is the same
 * afterwards.
 */
export const IMAGE_VERSION = 16
/** The headers of slabs and tables, which only the writer uses. */
export const FIRST_HEADER = 32
const HEADER_WORDS = 4
/** The shapes of the tables, which readers load. */
export const FIRST_SHAPE = FIRST_HEADER + REGION_NAMES.length * HEADER_WORDS
const CONTROL_BYTES = 4 * (FIRST_SHAPE + 16)

/** The journal has space for a section of 5,000 new rules, which changes up to 40,000 lines. A larger section is written in place. */
const JOURNAL_LINES = 2 ** 16
/** The journal consists of a header, an address for each line, and the lines. */
export const JOURNAL_HEADER_WORDS = 64
export const LINE_WORDS = 16
const SMALL_JOURNAL_LINES = 2 ** 10

const MIB = 2 ** 20
/**
 * The factors by which the indexes of tests are smaller than a large one. A small index has 9 MiB, enough for thousands of rows, and a tiny
 * index has 1 MiB, enough for a hundred rows of each kind. They are small because allocators may fill all of an index with zeros.
 */
const TEST_PARTS = { small: 1024, tiny: 8192 }
/** The size of an index: `large` for a service, `small` or `tiny` for tests. */
export type Reserve = keyof typeof TEST_PARTS | 'large'
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

/**
 * One thread's view of a region, as 32-bit words and as doubles. Readers have a `SharedRegion`. The writer has a `JournaledRegion`, so that
 * both use the same slabs and tables.
 */
export interface Region {
  readonly byteLength: number
  get(at: number): number
  set(at: number, value: number): void
  /** Adds `by` to a word and returns the sum. */
  add(at: number, by: number): number
  /** Returns the double at a position that counts doubles. */
  getDouble(at: number): number
  setDouble(at: number, value: number): void
  /** Sets `count` words to 0. */
  clear(at: number, count: number): void
  /**
   * Finds a line, for several loads from it: returns the offset in `located` of the word `at`. The other words of the line are next to it.
   * The offset is valid until the next store or search.
   */
  locate(at: number): number
  /** Finds a line as `locate` does, for several stores to it. */
  claim(at: number): number
  readonly located: Int32Array
}

/** A view that reads and writes the shared memory itself. */
export class SharedRegion implements Region {
  readonly words: Int32Array
  readonly doubles: Float64Array

  constructor(buffer: SharedArrayBuffer, skippedBytes = SKIPPED_BYTES) {
    this.words = new Int32Array(buffer, skippedBytes)
    this.doubles = new Float64Array(buffer, skippedBytes)
  }

  get byteLength(): number {
    return this.words.byteLength
  }

  get located(): Int32Array {
    return this.words
  }

  locate(at: number): number {
    return at
  }

  claim(at: number): number {
    return at
  }

  get(at: number): number {
    return this.words[at]!
  }

  set(at: number, value: number): void {
    this.words[at] = value
  }

  add(at: number, by: number): number {
    return (this.words[at]! += by)
  }

  getDouble(at: number): number {
    return this.doubles[at]!
  }

  setDouble(at: number, value: number): void {
    this.doubles[at] = value
  }

  clear(at: number, count: number): void {
    this.words.fill(0, at, at + count)
  }
}

/** One thread's views of the control block and of all regions of an index. */
export class Memory<View extends Region = Region> {
  readonly shared: SharedIndex
  /** The control block itself. Only the writer reads and writes the headers in it, so they need no view. */
  readonly control: Int32Array
  /** The view of the control block, for the words of tables' headers that readers read. */
  readonly shapes: View
  readonly regions: Readonly<Record<RegionName, View>>

  /** `view` returns the thread's view of a part of the memory. `number` is its number, as in `wordsOfParts`. */
  constructor(shared: SharedIndex, view: (part: SharedRegion, number: number) => View) {
    this.shared = shared
    this.control = new Int32Array(shared.control)
    this.shapes = view(new SharedRegion(shared.control, 0), 0)
    this.regions = mapRegions((name) => view(new SharedRegion(shared.regions[name]), 1 + REGION_NAMES.indexOf(name)))
  }
}

/** Returns the words of all parts of the memory, by number: the control block has the number 0, and the regions follow in their order. */
export function wordsOfParts(shared: SharedIndex): Int32Array[] {
  const regions = REGION_NAMES.map((name) => new SharedRegion(shared.regions[name]).words)
  return [new Int32Array(shared.control), ...regions]
}

/** Returns a text that changes whenever the layout of the control block or of the regions changes. */
export function describeMemory(): string {
  return [FIRST_HEADER, HEADER_WORDS, FIRST_SHAPE, SKIPPED_BYTES, ...REGION_NAMES].join(' ')
}

/** Returns the first bytes of a region. `used` is the number of bytes that its slab or table uses. */
export function startOfRegion(buffer: SharedArrayBuffer, used: number): Uint8Array {
  return new Uint8Array(buffer, 0, SKIPPED_BYTES + used)
}

/**
 * Returns the offset of a region's header in the control block. A header has four words for the state of the region's
 * slab or table.
 */
export function headerOf(name: RegionName): number {
  return FIRST_HEADER + REGION_NAMES.indexOf(name) * HEADER_WORDS
}

/** Returns the offset of a table's shape in the control block: two words, which determine the bucket of a hash. */
export function shapeOf(primary: RegionName): number {
  // Each table before this one has two regions.
  return FIRST_SHAPE + REGION_NAMES.indexOf(primary) - REGION_NAMES.indexOf('byId')
}

/**
 * Reserves the memory of a new index. The index is smaller where the system provides less than a large index requests
 * (`vm.overcommit_memory=2`, or a single block larger than the machine's memory). The sizes are tried in ascending
 * order, because the memory of a failed attempt is freed only by the next garbage collection.
 */
export function createShared(hashKey: readonly number[], reserve: Reserve): SharedIndex {
  const control = new SharedArrayBuffer(CONTROL_BYTES)
  const lines = reserve === 'large' ? JOURNAL_LINES : SMALL_JOURNAL_LINES
  const journal = new SharedArrayBuffer(4 * (JOURNAL_HEADER_WORDS + lines * (1 + LINE_WORDS)))
  if (reserve !== 'large') return { hashKey, control, journal, regions: reserveRegions(TEST_PARTS[reserve]) }
  let regions = reserveRegions(LEAST_PART)
  try {
    for (let part = LEAST_PART / 2; part >= 1; part /= 2) regions = reserveRegions(part)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return { hashKey, control, journal, regions }
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
