import { type Customer, customers } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from 'wouter'

import { useList } from '../api/hooks.ts'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { Screen } from '../parts/page-header.tsx'
import { When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters, useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.customers

const COLUMNS: readonly Column<Customer>[] = [
  { title: t.email, cell: ({ email }) => email },
  { title: t.nameOf, cell: ({ name }) => name ?? '' },
  { title: t.externalId, cell: ({ externalId }) => externalId ?? '' },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Customers({ me }: { me: Me }) {
  const [filters, setFilters, clear] = useUrlFilters({ email: null })
  const [, navigate] = useLocation()
  const [isCreating, creating] = useDisclosure(useUrlParameters().has('new'))
  const list = useList(customers.listCustomers, { query: filters })
  const create = me.permissions.includes('customers.write') && <Button onClick={creating.open}>{t.new}</Button>
  return (
    <Screen title={t.title} actions={create}>
      <TextInput
        label={t.exactEmail}
        defaultValue={filters.email ?? ''}
        onBlur={(event) => setFilters({ email: event.currentTarget.value.trim() })}
        onKeyDown={(event) => event.key === 'Enter' && setFilters({ email: event.currentTarget.value.trim() })}
        maw={320}
      />
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/customers/${id}`}
        label={t.title}
        empty={
          clear ? (
            t.emptyFiltered
          ) : (
            <>
              {t.empty}
              {create}
            </>
          )
        }
      />
      <CustomerWindow opened={isCreating} onClose={creating.close} onSaved={({ id }) => navigate(`/customers/${id}`)} />
    </Screen>
  )
}
