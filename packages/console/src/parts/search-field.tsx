import { searchResults } from '@keyward/contract/management/search'
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { call, queryString } from '../api/client.ts'
import { useName } from '../api/names.ts'
import { text } from '../text.ts'

const SETTLE_MS = 150
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
  const name = useName(value)
  const found = search.data ?? []
  const chosen = value !== null && name !== '' && !found.some((one) => one.value === value)
  return (
    <Select
      label={label}
      description={description}
      data={chosen ? [{ value, label: name }, ...found] : found}
      // The server has already filtered the options.
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
