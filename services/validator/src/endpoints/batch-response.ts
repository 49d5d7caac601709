/**
 * Builds the body of the response to a batch: `{"results":[…]}`. The results are copied into one buffer, which all responses reuse. The
 * result of a check that waits for Postgres is a gap. A response with gaps is completed outside of the buffer.
 */

import { MAX_BATCH_CHECKS } from '@keyward/contract/validation'

const PREFIX = new TextEncoder().encode('{"results":[')
const SUFFIX_BYTES = 2
const COMMA = 44
const CLOSE_BRACKET = 93
const CLOSE_BRACE = 125
/** The initial size of the buffer. It suffices for 100 results without entitlements. */
const INITIAL_BYTES = 32 * 1024

export class BatchResponse {
  #buffer = new Uint8Array(INITIAL_BYTES)
  #length = 0
  #count = 0
  /** The start and the end of each result in the buffer. The start of a gap equals its end. */
  readonly #starts = new Int32Array(MAX_BATCH_CHECKS)
  readonly #ends = new Int32Array(MAX_BATCH_CHECKS)

  begin(): void {
    this.#buffer.set(PREFIX)
    this.#length = PREFIX.length
    this.#count = 0
  }

  add(result: Uint8Array): void {
    const needed = this.#length + result.length + 1 + SUFFIX_BYTES
    if (needed > this.#buffer.length) this.#grow(needed)
    if (this.#count > 0) this.#buffer[this.#length++] = COMMA
    this.#buffer.set(result, this.#length)
    this.#starts[this.#count] = this.#length
    this.#length += result.length
    this.#ends[this.#count++] = this.#length
  }

  /** Appends a gap, in place of the result of a check that waits for Postgres. */
  addGap(): void {
    this.#starts[this.#count] = this.#ends[this.#count] = 0
    this.#count++
  }

  /** Returns the body of a response without gaps. The next response overwrites the bytes. */
  end(): Uint8Array {
    this.#buffer[this.#length] = CLOSE_BRACKET
    this.#buffer[this.#length + 1] = CLOSE_BRACE
    return this.#buffer.subarray(0, this.#length + SUFFIX_BYTES)
  }

  /** Returns copies of the results, with null for each gap. */
  results(): (Uint8Array | null)[] {
    return Array.from({ length: this.#count }, (_, n) => {
      const start = this.#starts[n]!
      return start === this.#ends[n]! ? null : this.#buffer.slice(start, this.#ends[n])
    })
  }

  /** Returns the body of a response with these results. */
  static of(results: readonly Uint8Array[]): Uint8Array {
    const response = new BatchResponse()
    response.begin()
    for (const result of results) response.add(result)
    return response.end()
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, 2 * this.#buffer.length))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
  }
}
