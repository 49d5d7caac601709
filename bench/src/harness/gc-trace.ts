/** Parses the output of `node --trace-gc`: one line per collection, of the main thread and of each worker. */

export interface Collection {
  /** The name that V8 uses for the thread's isolate. */
  isolate: string
  /** The time from the start of the thread to the collection. */
  atMs: number
  kind: string
  /** The time for which the thread was stopped. */
  pauseMs: number
}

// [4711:0x5581:0] 1234 ms: Scavenge 4.5 (5.0) -> 4.1 (6.0) MB, pooled: 0 MB, 0.50 / 0.00 ms (average mu = 1.000, ...) task;
// [4711:0x5581:0] 1234 ms: Mark-Compact (reduce) 9.1 (12.0) -> 5.0 (9.0) MB, pooled: 0 MB, 5.12 / 0.00 ms (+ 1.2 ms in 10 steps ...
const LINE = /^\[\d+:(0x[0-9a-f]+)(?::\d+)?\]\s+(\d+) ms: ([A-Z][\w-]*(?: \([\w ]+\))?)[^/]*?([\d.]+) \/ [\d.]+ ms/

/** Returns the collection that a line of the output reports, or null for any other line. */
export function parseCollection(line: string): Collection | null {
  const match = LINE.exec(line)
  if (match === null) return null
  const [, isolate = '', atMs = '', kind = '', pauseMs = ''] = match
  return { isolate, atMs: Number(atMs), kind, pauseMs: Number(pauseMs) }
}
