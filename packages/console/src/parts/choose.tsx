import { customer, page } from '@keyward/contract'
import { product } from '@keyward/contract/management/products'
import { searchResults } from '@keyward/contract/management/search'
import { Autocomplete, Select, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'

import { call, queryString } from '../api/client.ts'
import { useList } from '../api/hooks.ts'
import { text } from '../text.ts'

const SETTLE_MS = 150
/** The minimum length of a text for which customers are proposed. */
const MIN_SEARCH = 3

/** A field for selecting a product by its name. An optional field can be cleared. */
export function ProductField({
  value,
  onChange,
  label = text.licenses.product,
  error,
  isOptional = false,
}: {
  value: string | null
  onChange: (id: string | null) => void
  label?: string
  error?: string | undefined
  isOptional?: boolean
}) {
  const { items } = useList('/products', product)
  return (
    <Select
      label={label}
      placeholder={isOptional ? text.any : ''}
      data={items.map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={onChange}
      error={error}
      searchable
      clearable={isOptional}
      required={!isOptional}
    />
  )
}

/** A field for the e-mail address of an existing or new customer. It proposes customers while the person types. */
export function CustomerField({
  value,
  onChange,
  error,
}: {
  value: string
  onChange: (email: string) => void
  error?: string | undefined
}) {
  const [q] = useDebouncedValue(value.trim(), SETTLE_MS)
  const search = useQuery({
    queryKey: ['search', q],
    queryFn: () => call({ method: 'GET', path: `/search${queryString({ q })}` }, searchResults),
    enabled: q.length >= MIN_SEARCH,
    placeholderData: keepPreviousData,
  })
  const found = q.length >= MIN_SEARCH ? (search.data?.customers ?? []) : []
  const exact = found.find(({ email }) => email.toLowerCase() === q.toLowerCase())
  const isNew = exact === undefined && q.includes('@') && search.isSuccess && !search.isPlaceholderData
  return (
    <Autocomplete
      label={text.licenses.customer}
      description={text.licenses.customerHint}
      data={[...new Set(found.map(({ email }) => email))]}
      // The server has already filtered the options, by e-mail address and by name.
      filter={({ options }) => options}
      value={value}
      onChange={onChange}
      error={error}
      inputMode="email"
      required
      inputContainer={(input) => (
        <>
          {input}
          <Text size="xs" c="dimmed" mt={4} role="status" component="div">
            {exact ? text.licenses.knownCustomer(exact.name ?? exact.email) : isNew ? text.licenses.newCustomer : ''}
          </Text>
        </>
      )}
    />
  )
}

/** Returns the id of the customer with the e-mail address. Creates the customer if none exists. */
export async function customerWith(email: string, name = ''): Promise<string> {
  const found = await call({ method: 'GET', path: `/customers${queryString({ email, limit: 1 })}` }, page(customer))
  const [first] = found.data
  if (first) return first.id
  return (await call({ method: 'POST', path: '/customers', body: { email, ...(name !== '' && { name }) } }, customer))
    .id
}
