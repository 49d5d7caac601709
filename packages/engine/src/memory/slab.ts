/**
 * Rows of one size in a region. A freed row goes to a free list and is used again; row 0 is never handed out, so that
 * 0 can mean "none". Only the writer allocates and frees, and whether there is room is asked before the write section.
 */
import type { Region } from './shared-memory.ts'

// Words of the header in the control block.
const ROWS = 0
const FREE = 1
const FREE_COUNT = 2

export class Arena {
  readonly rowWords: number
  readonly region: Region
  private readonly control: Int32Array
  private readonly header: number

  constructor(region: Region, control: Int32Array, header: number, rowWords: number) {
    this.region = region
    this.control = control
    this.header = header
    this.rowWords = rowWords
  }

  /** Rows ever handed out; every row number is at most this. */
  get highest(): number {
    return this.control[this.header + ROWS]!
  }

  get live(): number {
    return this.highest - this.control[this.header + FREE_COUNT]!
  }

  get usedBytes(): number {
    return 4 * this.rowWords * (this.highest + 1)
  }

  /** Whether `count` more rows can be allocated. */
  hasRoom(count: number): boolean {
    const fresh = count - this.control[this.header + FREE_COUNT]!
    return fresh <= 0 || this.region.holds(4 * this.rowWords * (this.highest + 1 + fresh))
  }

  /** A row, zeroed. */
  allocate(): number {
    const { control, header, rowWords } = this
    const { words } = this.region
    const free = control[header + FREE]!
    if (free === 0) return (control[header + ROWS]! += 1)
    control[header + FREE] = words[free * rowWords]!
    control[header + FREE_COUNT]! -= 1
    words[free * rowWords] = 0
    return free
  }

  free(row: number): void {
    const { control, header, rowWords } = this
    const { words } = this.region
    words.fill(0, row * rowWords, (row + 1) * rowWords)
    words[row * rowWords] = control[header + FREE]!
    control[header + FREE] = row
    control[header + FREE_COUNT]! += 1
  }
}
