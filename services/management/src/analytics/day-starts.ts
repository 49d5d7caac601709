/** Computes the days of a time zone, which have 23 to 25 hours when its clocks change. */

const QUARTER_MS = 15 * 60_000
const HOUR_MS = 4 * QUARTER_MS
/** A day is longer than this. */
const SHORTEST_MS = 20 * HOUR_MS
/** A day is shorter than this. */
const LONGEST_MS = 30 * HOUR_MS

/** Returns the start of each day that overlaps the period from `fromMs` to before `toMs`. All offsets are multiples of a quarter of an hour. */
export function dayStarts(fromMs: number, toMs: number, timeZone: string): number[] {
  const format = new Intl.DateTimeFormat('en', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric' })
  const dateOf = (ms: number) => format.format(ms)
  const firstDate = dateOf(fromMs)
  const starts = [firstAfter(fromMs - LONGEST_MS, fromMs, (ms) => dateOf(ms) === firstDate)]
  for (;;) {
    const startMs = starts.at(-1)!
    const date = dateOf(startMs)
    const nextMs = firstAfter(startMs + SHORTEST_MS, startMs + LONGEST_MS, (ms) => dateOf(ms) !== date)
    if (nextMs >= toMs) return starts
    starts.push(nextMs)
  }
}

/** Returns the first quarter of an hour after `lowMs`, up to `highMs`, at which the condition holds. It holds from then on. */
function firstAfter(lowMs: number, highMs: number, holds: (ms: number) => boolean): number {
  let [low, high] = [Math.floor(lowMs / QUARTER_MS), Math.floor(highMs / QUARTER_MS)]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle * QUARTER_MS)) high = middle
    else low = middle
  }
  return high * QUARTER_MS
}
