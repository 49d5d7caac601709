/** Defines response bodies that are too long to be in memory at once. */

/** A response body whose chunks are sent as soon as they are produced. */
export class Streamed {
  readonly chunks: AsyncIterable<string>
  /** Called once, when the response has ended or the caller has disconnected. */
  readonly close: () => void

  constructor(chunks: AsyncIterable<string>, close: () => void) {
    this.chunks = chunks
    this.close = close
  }
}
