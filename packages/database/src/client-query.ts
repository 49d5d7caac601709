/** Replaces the function `query` of a connection. */

import pg from 'pg'

export type Query = (...args: unknown[]) => unknown

/** Sends every later statement of the connection through the result of `replace`, which receives the present function. */
export function replaceQuery(client: pg.ClientBase, replace: (query: Query) => Query): void {
  const query: unknown = client.query.bind(client)
  if (!(client instanceof pg.Client) || typeof query !== 'function') return
  Object.defineProperty(client, 'query', {
    configurable: true,
    value: replace((...args) => Reflect.apply(query, client, args) as unknown),
  })
}
