import { setImmediate as nextTurn } from 'node:timers/promises'

/** The time after which a loop pauses, so that the only thread of the process serves other requests. */
const MAX_TURN_MS = 5

/** Yields the values. Between two values, the process serves other requests if the loop has run for 5 ms since it last did. */
export async function* inTurns<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  let turnEndsMs = performance.now() + MAX_TURN_MS
  for (const value of values) {
    if (performance.now() > turnEndsMs) {
      await nextTurn()
      turnEndsMs = performance.now() + MAX_TURN_MS
    }
    yield value
  }
}
