import { customers } from '@keyward/contract'
import { search as finding } from '@keyward/contract/management/search'
import { Autocomplete, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'

import { call } from '../api/client.ts'
import { SearchField } from './search-field.tsx'

const SETTLE_MS = 150
/** The minimum length of a text for which customers are proposed. */
const MIN_SEARCH = 3

/** A field for selecting a product by its name. An optional field can be cleared. */
export function ProductField({
  label = 'Product',
  ...props
}: {
  value: string | null
  onChange: (id: string | null) => void
  label?: string
  error?: string | undefined
  isOptional?: boolean
}) {
  return <SearchField kind="product" label={label} {...props} />
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
    queryFn: () => call(finding.search, { query: { q } }),
    enabled: q.length >= MIN_SEARCH,
    placeholderData: keepPreviousData,
  })
  const found = q.length >= MIN_SEARCH ? (search.data?.customers ?? []) : []
  const exact = found.find(({ email }) => email.toLowerCase() === q.toLowerCase())
  const isNew = exact === undefined && q.includes('@') && search.isSuccess && !search.isPlaceholderData
  return (
    <Autocomplete
      label="Customer"
      description="Enter the e-mail address. A customer is created if none has it."
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
            {exact ? `Existing customer: ${exact.name ?? exact.email}` : isNew ? 'A new customer will be created.' : ''}
          </Text>
        </>
      )}
    />
  )
}

/** Returns the id of the customer with the e-mail address. Creates the customer if none exists. */
export async function customerWith(email: string, name = ''): Promise<string> {
  const { data } = await call(customers.listCustomers, { query: { email, limit: 1 } })
  const found = data[0] ?? (await call(customers.createCustomer, { body: { email, ...(name !== '' && { name }) } }))
  return found.id
}
