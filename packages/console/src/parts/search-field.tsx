import { products } from '@keyward/contract/management/products'
import { search as finding } from '@keyward/contract/management/search'
import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { call } from '../api/client.ts'
import { useRead } from '../api/hooks.ts'
import { useName } from '../api/names.ts'

const SETTLE_MS = 150
type Searched = 'license' | 'customer' | 'product'

interface Option {
  value: string
  label: string
}

function labelOf({ name, email }: { name: string | null; email: string }): string {
  return name === null ? email : `${name}, ${email}`
}

async function find(kind: Searched, q: string): Promise<Option[]> {
  const found = await call(finding.search, { query: { q } })
  if (kind === 'license') return found.licenses.map(({ id, key }) => ({ value: id, label: key }))
  if (kind === 'product') return found.products.map(({ id, name }) => ({ value: id, label: name }))
  return found.customers.map((one) => ({ value: one.id, label: labelOf(one) }))
}

/** Returns the newest products whose name contains `q`, and whether these are all products that there are. */
function useNewest(kind: Searched, q: string): { newest: Option[]; areAll: boolean } {
  const { data } = useRead(products.listProducts, kind === 'product' ? {} : null)
  const matching = data?.data.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase())) ?? []
  return { newest: matching.map(({ id, name }) => ({ value: id, label: name })), areAll: data?.nextCursor === null }
}

/** Returns the options for a typed text. Products are offered before the person types, too. */
function useOptions(kind: Searched, q: string): Option[] {
  const { newest, areAll } = useNewest(kind, q)
  const search = useQuery({
    queryKey: ['options', kind, q],
    queryFn: () => find(kind, q),
    enabled: q !== '' && !areAll,
    placeholderData: keepPreviousData,
  })
  const found = q === '' || areAll ? [] : (search.data ?? [])
  return [...newest, ...found.filter(({ value }) => !newest.some((one) => one.value === value))]
}

export function SearchField({
  kind,
  label,
  description,
  value,
  onChange,
  error,
  isFocused = false,
  isOptional = false,
}: {
  kind: Searched
  label: string
  description?: string
  value: string | null
  onChange: (id: string | null) => void
  error?: string | undefined
  isFocused?: boolean
  isOptional?: boolean
}) {
  const name = useName(value)
  const [typed, setTyped] = useState('')
  const [settled] = useDebouncedValue(typed.trim(), SETTLE_MS)
  // The field contains the name of the chosen resource, which is not a search.
  const q = settled === name ? '' : settled
  const found = useOptions(kind, q)
  const chosen = value !== null && name !== '' && !found.some((one) => one.value === value)
  return (
    <Select
      label={label}
      {...(description !== undefined && { description })}
      placeholder={isOptional ? label : ''}
      data={chosen ? [{ value, label: name }, ...found] : found}
      // The options are already filtered.
      filter={({ options }) => options}
      value={value}
      onChange={onChange}
      onSearchChange={setTyped}
      nothingFoundMessage={q === '' ? undefined : 'No results'}
      error={error}
      searchable
      clearable={isOptional}
      required={!isOptional}
      {...(isFocused && { 'data-autofocus': true })}
    />
  )
}
