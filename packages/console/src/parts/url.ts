/** Keeps the filters of a list in the URL, so that reloads and copied links show the same list. */

import { useLocation, useSearch } from 'wouter'

import type { Sorting } from './table.tsx'

/** Returns the parameters of the URL. Reads them from the browser, because the router decodes `%` twice. */
export function useUrlParameters(): URLSearchParams {
  useSearch()
  return new URLSearchParams(window.location.search)
}

/** The values of filters. Null is the absence of a filter. */
export type Filters<Name extends string> = Readonly<Record<Name, string | null>>

/** The filters, a function that changes some of them, and a function that clears all of them, or null if none is set. */
export type UrlFilters<Name extends string> = readonly [
  Filters<Name>,
  (changed: Partial<Filters<Name>>) => void,
  (() => void) | null,
]

/**
 * Returns the filters of the URL. `absent` contains their names. An empty parameter of the URL is an absent filter.
 */
export function useUrlFilters<Name extends string>(absent: Readonly<Record<Name, null>>): UrlFilters<Name> {
  const search = useUrlParameters()
  const [location, navigate] = useLocation()
  const filters: Filters<Name> = { ...absent }
  for (const [name, value] of search)
    if (Object.hasOwn(filters, name) && value !== '') Object.assign(filters, { [name]: value })
  const change = (changed: Partial<Filters<Name>>) => {
    for (const [name, value] of Object.entries<string | null | undefined>(changed)) {
      if (value === null || value === undefined || value === '') search.delete(name)
      else search.set(name, value)
    }
    const query = search.toString()
    navigate(query === '' ? location : `${location}?${query}`, { replace: true })
  }
  const isSet = Object.values(filters).some((value) => value !== null)
  return [filters, change, isSet ? () => change(absent) : null]
}

/** Returns the sort order of the URL as query parameters of the API, and as the state of a table. */
export function useUrlSorting(): [Filters<'sort' | 'order'>, Sorting] {
  const [filters, change] = useUrlFilters({ sort: null, order: null })
  const onSort: Sorting['onSort'] = (sort, order) => change({ sort, order })
  return [filters, { by: filters.sort, order: filters.order === 'asc' ? 'asc' : 'desc', onSort }]
}
