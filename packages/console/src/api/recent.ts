/**
 * Remembers the licenses, customers and products that were opened last, which the search offers. They are removed at sign-out and when the
 * browser tab is closed, because they contain license keys and names.
 */

import { useEffect } from 'react'
import { z } from 'zod'

const KEY = 'keyward recent'
const MAX_RECENT = 6

const items = z.array(z.object({ path: z.string(), label: z.string(), kind: z.string() }))
type RecentItem = z.infer<typeof items>[number]

export function recentItems(): RecentItem[] {
  try {
    return items.parse(JSON.parse(sessionStorage.getItem(KEY) ?? '[]'))
  } catch {
    return []
  }
}

export function forgetRecent(): void {
  sessionStorage.removeItem(KEY)
}

/** Remembers the item that a screen shows. `label` is undefined until it is read. */
export function useRemembered(path: string, kind: string, label: string | undefined): void {
  useEffect(() => {
    if (label === undefined) return
    const others = recentItems().filter((item) => item.path !== path)
    sessionStorage.setItem(KEY, JSON.stringify([{ path, kind, label }, ...others].slice(0, MAX_RECENT)))
  }, [path, kind, label])
}
