/** A response body that is longer than what should be in memory at once. */

/** A response that is sent as it is made. */
export class Streamed {
  readonly chunks: AsyncIterable<string>
  /** Called once, when the response has ended or the caller has gone. */
  readonly close: () => void

  constructor(chunks: AsyncIterable<string>, close: () => void) {
    this.chunks = chunks
    this.close = close
  }
}
