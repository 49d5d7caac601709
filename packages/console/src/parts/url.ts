/** Keeps the filters of a list in the URL, so that reloads and copied links show the same list. */

import { useLocation, useSearch } from 'wouter'

/** Returns the filters of the URL with the defaults of `absent`, and a function that changes one filter. */
export function useUrlFilters<Filters extends Record<string, string>>(
  absent: Filters,
): [Filters, (name: keyof Filters & string, value: string | null) => void] {
  const search = new URLSearchParams(useSearch())
  const [location, navigate] = useLocation()
  const values = { ...absent }
  for (const [name, value] of search) if (name in values) Object.assign(values, { [name]: value })
  const change = (name: keyof Filters & string, value: string | null) => {
    if (value === null || value === '') search.delete(name)
    else search.set(name, value)
    const query = search.toString()
    navigate(query === '' ? location : `${location}?${query}`, { replace: true })
  }
  return [values, change]
}
