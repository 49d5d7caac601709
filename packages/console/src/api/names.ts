/** Reads the names of resources by their ids, up to 100 names with one request. */

import { MAX_NAMES, names } from '@keyward/contract/management/names'
import { useQuery } from '@tanstack/react-query'

import { call } from './client.ts'

/** The time for which a name is cached. Lists show many names, and names change rarely. */
const STALE_MS = 300_000

interface Waiting {
  resolve: (name: string | null) => void
  reject: (error: unknown) => void
}

let waiting = new Map<string, Waiting[]>()

async function readAll(): Promise<void> {
  const all = [...waiting]
  waiting = new Map()
  for (let at = 0; at < all.length; at += MAX_NAMES) {
    const some = all.slice(at, at + MAX_NAMES)
    try {
      const found = await call(names.readNames, { query: { ids: some.map(([id]) => id).join(',') } })
      for (const [id, requests] of some) for (const { resolve } of requests) resolve(found.names[id] ?? null)
    } catch (error) {
      for (const [, requests] of some) for (const { reject } of requests) reject(error)
    }
  }
}

/**
 * Returns the name, or null for an unknown id. Sends the request in the next turn of the event loop, so that all calls of one rendering
 * share it.
 */
function nameOf(id: string): Promise<string | null> {
  if (waiting.size === 0) setTimeout(() => void readAll())
  return new Promise((resolve, reject) => {
    waiting.set(id, [...(waiting.get(id) ?? []), { resolve, reject }])
  })
}

/** Returns the name of a resource, or an empty string until it has been read and for a resource that does not exist. */
export function useName(id: string | null): string {
  const read = useQuery({
    queryKey: ['name', id],
    queryFn: () => nameOf(id ?? ''),
    enabled: id !== null,
    staleTime: STALE_MS,
  })
  return read.data ?? ''
}
