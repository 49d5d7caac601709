/** A field that finds a license or a customer on the server while the person types. */

import { customer, license } from '@keyward/contract'
import { product } from '@keyward/contract/management/products'
import { searchResults } from '@keyward/contract/management/search'
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { call, queryString } from '../api/client.ts'
import { text } from '../text.ts'

const SETTLE_MS = 150
/** The time for which a name is cached. Names change rarely, and lists show many of them. */
const NAME_STALE_MS = 300_000

/** Functions that request the displayed name of a resource by its id. */
const NAMES = {
  license: async (id: string) => (await call({ method: 'GET', path: `/licenses/${id}` }, license)).key,
  customer: async (id: string) => {
    const { name, email } = await call({ method: 'GET', path: `/customers/${id}` }, customer)
    return name ?? email
  },
  product: async (id: string) => (await call({ method: 'GET', path: `/products/${id}` }, product)).name,
}
export type Searched = 'license' | 'customer'

function labelOf({ name, email }: { name: string | null; email: string }): string {
  return name === null ? email : `${name}, ${email}`
}

interface Option {
  value: string
  label: string
}

async function find(kind: Searched, q: string): Promise<Option[]> {
  const found = await call({ method: 'GET', path: `/search${queryString({ q })}` }, searchResults)
  if (kind === 'license') return found.licenses.map(({ id, key }) => ({ value: id, label: key }))
  return found.customers.map((one) => ({ value: one.id, label: labelOf(one) }))
}

/** Returns the name of a resource, or an empty string until the name has been read. */
export function useNameOf(kind: keyof typeof NAMES, id: string | null): string {
  const read = useQuery({
    queryKey: ['name', kind, id],
    queryFn: () => NAMES[kind](id ?? ''),
    enabled: id !== null,
    staleTime: NAME_STALE_MS,
  })
  return read.data ?? ''
}

export function SearchField({
  kind,
  label,
  description,
  value,
  onChange,
  error,
  isFocused = false,
}: {
  kind: Searched
  label: string
  description: string
  value: string | null
  onChange: (id: string | null) => void
  error?: string | undefined
  isFocused?: boolean
}) {
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed.trim(), SETTLE_MS)
  const search = useQuery({
    queryKey: ['options', kind, q],
    queryFn: () => find(kind, q),
    enabled: q !== '',
    placeholderData: keepPreviousData,
  })
  const name = useNameOf(kind, value)
  const found = search.data ?? []
  const chosen = value !== null && name !== '' && !found.some((one) => one.value === value)
  return (
    <Select
      label={label}
      description={description}
      data={chosen ? [{ value, label: name }, ...found] : found}
      // The server has filtered the options already.
      filter={({ options }) => options}
      value={value}
      onChange={onChange}
      onSearchChange={setTyped}
      nothingFoundMessage={q === '' ? undefined : text.rules.noResults}
      error={error}
      searchable
      required
      {...(isFocused && { 'data-autofocus': true })}
    />
  )
}
