/**
 * Splits the body of an import, `{"rules": [row, …]}`, into the bytes of its rows while it arrives. Each row is parsed separately later. No
 * body therefore occupies the process for long or becomes a large tree of objects.
 */

import { parseJson } from './json.ts'
import { ApiError } from './problem.ts'

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c] as const
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d] as const
/** The maximum size of the frame, which is the body without its rows, such as `{"rules":[]}`. */
const MAX_FRAME_BYTES = 64 * 1024
/** The member name of the rows, the colon and the opening bracket are recognized in this number of bytes at the end of the frame. */
const TAIL_BYTES = 64

/** The body of an import, split into its frame and the bytes of its rows. */
export interface SplitBody {
  /** The body with an empty list in place of the rows. */
  frame: unknown
  /** The bytes of the first rows, up to the limit of an import. */
  rows: readonly Uint8Array[]
  /** The number of all rows, including those beyond the limit. */
  count: number
}

export interface SplitterOptions {
  /** The name of the member that contains the rows. */
  name: string
  /** Rows beyond this number are counted and dropped. */
  maxRows: number
  maxRowBytes: number
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
}

function tooLarge(what: string, bytes: number): ApiError {
  return new ApiError('PAYLOAD_TOO_LARGE', `${what} must not be larger than ${bytes / 1024} KiB.`)
}

export class RowSplitter {
  readonly #options: SplitterOptions
  readonly #rowsBegin: RegExp
  #frame: Buffer[] = []
  #frameBytes = 0
  #tail = Buffer.alloc(0)
  #rows: Buffer[] = []
  #count = 0
  /** The bytes of the row that is being read, as slices of the received chunks. */
  #row: Buffer[] = []
  #rowBytes = 0
  /** The number of brackets that are open. Between two rows it is 2. */
  #depth = 0
  #inString = false
  #isEscaped = false
  #inRows = false

  constructor(options: SplitterOptions) {
    this.#options = options
    this.#rowsBegin = new RegExp(String.raw`[^\\]"${options.name}"\s*:\s*\[$`)
  }

  /** Processes the next bytes of the body. Throws PAYLOAD_TOO_LARGE and MALFORMED_JSON. */
  push(chunk: Buffer): void {
    let start = 0
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (this.#inString) {
        this.#stepString(byte)
        continue
      }
      switch (byte) {
        case QUOTE:
          this.#inString = true
          break
        case OPEN_OBJECT:
        case OPEN_LIST:
          this.#depth++
          if (this.#depth !== 2 || this.#inRows) break
          this.#takeFrame(chunk.subarray(start, i + 1))
          start = i + 1
          if (byte === OPEN_LIST && this.#rowsBegin.test(this.#tail.toString('latin1'))) this.#startRows()
          break
        case CLOSE_OBJECT:
        case CLOSE_LIST:
          this.#depth--
          if (!this.#inRows || this.#depth !== 1) break
          this.#endRow(chunk.subarray(start, i), true)
          start = i
          this.#inRows = false
          break
        case COMMA:
          if (!this.#inRows || this.#depth !== 2) break
          this.#endRow(chunk.subarray(start, i), false)
          start = i + 1
          break
        default:
      }
    }
    const rest = chunk.subarray(start)
    if (this.#inRows) this.#takeRow(rest)
    else this.#takeFrame(rest)
  }

  /** Returns the parts of the complete body. Throws MALFORMED_JSON. */
  end(): SplitBody {
    return { frame: parseJson(Buffer.concat(this.#frame)), rows: this.#rows, count: this.#count }
  }

  #stepString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) this.#inString = false
  }

  #takeFrame(bytes: Buffer): void {
    this.#frameBytes += bytes.length
    if (this.#frameBytes > MAX_FRAME_BYTES) throw tooLarge(`The body without #/${this.#options.name}`, MAX_FRAME_BYTES)
    this.#frame.push(bytes)
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
  }

  #takeRow(bytes: Buffer): void {
    this.#rowBytes += bytes.length
    const { name, maxRowBytes } = this.#options
    if (this.#rowBytes > maxRowBytes) throw tooLarge(`#/${name}/${this.#count}`, maxRowBytes)
    if (this.#rows.length < this.#options.maxRows) this.#row.push(bytes)
  }

  /** Begins the list of rows. As with `JSON.parse`, the last of several members with the name of the list is used. */
  #startRows(): void {
    this.#inRows = true
    this.#rows = []
    this.#count = 0
  }

  #endRow(bytes: Buffer, isLast: boolean): void {
    this.#takeRow(bytes)
    const row = Buffer.concat(this.#row)
    this.#row = []
    this.#rowBytes = 0
    if (this.#rows.length === this.#options.maxRows) {
      this.#count++
      return
    }
    // Empty brackets are an empty list. A comma without a row before or after it is an error.
    const isEmptyList = isLast && this.#count === 0 && isBlank(row)
    if (isEmptyList) return
    if (isBlank(row)) throw new ApiError('MALFORMED_JSON', 'The body must be JSON in UTF-8.')
    this.#rows.push(row)
    this.#count++
  }
}
