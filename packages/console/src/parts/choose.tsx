/** Form fields for selecting a product or a customer. */

import { customer, page } from '@keyward/contract'
import { product } from '@keyward/contract/management/products'
import { Select, TextInput } from '@mantine/core'

import { call, queryString } from '../api/client.ts'
import { useList } from '../api/hooks.ts'
import { text } from '../text.ts'

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

/** A field for the e-mail address of an existing or new customer. */
export function CustomerField({
  value,
  onChange,
  error,
}: {
  value: string
  onChange: (email: string) => void
  error?: string | undefined
}) {
  return (
    <TextInput
      label={text.licenses.customer}
      description={text.customers.email}
      type="email"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={error}
      required
    />
  )
}

/** Returns the id of the customer with the e-mail address. Creates the customer if none exists. */
export async function customerWith(email: string): Promise<string> {
  const found = await call({ method: 'GET', path: `/customers${queryString({ email, limit: 1 })}` }, page(customer))
  const [first] = found.data
  if (first) return first.id
  return (await call({ method: 'POST', path: '/customers', body: { email } }, customer)).id
}
