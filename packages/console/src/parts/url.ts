/** Filters of a list, kept in the address of the page, so that back, reload and a copied link show the same. */

import { useLocation, useSearch } from 'wouter'

/** Returns the filters, with those of `absent` where the address has none, and a function that changes one. */
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
