/**
 * Counts requests by caller in windows of ten seconds or another length, in the memory of this process only. Counts by address are kept here, because
 * addresses are never stored (docs/api.md#d1).
 */

export const WINDOW_SECONDS = 10
/** The maximum number of callers with separate counts in one window. Further callers share one count. */
const MAX_CALLERS = 100_000
const OTHERS = ''

interface WindowCounts {
  /** Counts a request, and returns the number of the caller's requests in the current window. */
  add(caller: string): number
  /** Returns the number of the caller's requests in the current window. */
  get(caller: string): number
}

/** `now` returns milliseconds. */
export function createWindowCounts(now: () => number = Date.now, seconds = WINDOW_SECONDS): WindowCounts {
  const counts = new Map<string, number>()
  let window = 0
  const keyOf = (caller: string): string => {
    const current = Math.floor(now() / (seconds * 1_000))
    if (current !== window) counts.clear()
    window = current
    return counts.has(caller) || counts.size < MAX_CALLERS ? caller : OTHERS
  }
  return {
    add(caller) {
      const key = keyOf(caller)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count
    },
    get: (caller) => counts.get(keyOf(caller)) ?? 0,
  }
}
