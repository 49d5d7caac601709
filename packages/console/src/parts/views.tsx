/** Views of a list: links that set some filters and clear the others. They look like tabs, with the number of items of each. */

import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'

import type { Filters } from './url.ts'

/** The number of items up to which the items of each view are counted, because counting reads all items of a view. */
const MAX_COUNTED = 10_000

export interface View<Query> {
  label: string
  query: Query
}

/** Whether the filters of a view are exactly those of the list. */
export function isCurrent(query: Readonly<Record<string, string | undefined>>, filters: Filters<string>): boolean {
  return Object.entries(filters).every(([name, value]) => value === (query[name] ?? null))
}

/**
 * The current view is the one whose filters are exactly those of the list. `Count` shows the number of items of a view, if the list has
 * at most 10,000 items.
 */
export function Views<Query extends Readonly<Record<string, string>>>({
  views,
  filters,
  items,
  Count,
}: {
  views: readonly View<Query>[]
  filters: Filters<string>
  /** The number of items of the whole list. */
  items: number | undefined
  Count: (props: { query: Query }) => ReactNode
}) {
  const [location] = useLocation()
  return (
    <nav className="views" aria-label="Views">
      {views.map(({ label, query }) => {
        const search = new URLSearchParams(query).toString()
        return (
          <Link
            key={label}
            href={search === '' ? location : `${location}?${search}`}
            {...(isCurrent(query, filters) && { 'aria-current': 'page' as const })}
          >
            {label}
            {items !== undefined && items <= MAX_COUNTED && (
              <>
                {' '}
                <span className="faint">
                  <Count query={query} />
                </span>
              </>
            )}
          </Link>
        )
      })}
    </nav>
  )
}
