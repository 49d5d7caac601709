/** Counts the round trips to Postgres of the requests of a management service in this process. */

import pg from 'pg'

export interface RoundTrips {
  /** Returns the number of round trips on the connections of the service during `work`. */
  during: (work: () => Promise<unknown>) => Promise<number>
  stop: () => void
}

/**
 * Begins to count. Only connections that are opened later are counted. A statement that is sent while its connection waits for a response
 * adds no round trip.
 */
export function countRoundTrips(): RoundTrips {
  let count = 0
  const proto = pg.Client.prototype
  // oxlint-disable-next-line typescript/unbound-method -- called with its receiver below
  const original: (...args: unknown[]) => unknown = proto.query
  const waiting = new WeakMap<object, number>()
  function query(this: pg.Client & { connectionParameters?: { application_name?: string } }, ...args: unknown[]) {
    const isFree = (waiting.get(this) ?? 0) === 0
    if (this.connectionParameters?.application_name === 'keyward-management' && isFree) count++
    waiting.set(this, (waiting.get(this) ?? 0) + 1)
    const end = () => waiting.set(this, (waiting.get(this) ?? 1) - 1)
    const last = args.at(-1)
    if (typeof last === 'function')
      return original.apply(this, [
        ...args.slice(0, -1),
        (...results: unknown[]) => (end(), Reflect.apply(last, null, results)),
      ])
    const result = original.apply(this, args)
    if (result instanceof Promise) result.then(end, end)
    return result
  }
  Object.assign(proto, { query })
  return {
    async during(work) {
      const before = count
      await work()
      return count - before
    },
    stop: () => void Object.assign(proto, { query: original }),
  }
}
