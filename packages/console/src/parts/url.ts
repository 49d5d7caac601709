/** Keeps the filters of a list in the URL, so that reloads and copied links show the same list. */

import { useLocation, useSearch } from 'wouter'

/** Returns the parameters of the URL. Reads them from the browser, because the router decodes `%` twice. */
export function useUrlParameters(): URLSearchParams {
  useSearch()
  return new URLSearchParams(window.location.search)
}

type Changed<Filters> = { readonly [Name in keyof Filters]?: string | null }

/**
 * Returns the filters of the URL, a function that changes one filter, and a function that changes several filters. `absent` contains the
 * default of each filter.
 */
export function useUrlFilters<Filters extends Record<string, string>>(
  absent: Filters,
): [Filters, (name: keyof Filters & string, value: string | null) => void, (changed: Changed<Filters>) => void] {
  const search = useUrlParameters()
  const [location, navigate] = useLocation()
  const values = { ...absent }
  for (const [name, value] of search) if (name in values) Object.assign(values, { [name]: value })
  const set = (name: string, value: string | null | undefined) => {
    if (value === null || value === undefined || value === '') search.delete(name)
    else search.set(name, value)
  }
  const apply = () => {
    const query = search.toString()
    navigate(query === '' ? location : `${location}?${query}`, { replace: true })
  }
  const change = (name: keyof Filters & string, value: string | null) => {
    set(name, value)
    apply()
  }
  const changeMany = (changed: Changed<Filters>) => {
    for (const name of Object.keys(changed)) set(name, changed[name])
    apply()
  }
  return [values, change, changeMany]
}
