import { type Customer, customers } from '@keyward/contract'
import { search as finding } from '@keyward/contract/management/search'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from 'wouter'

import { useList, useRead } from '../api/hooks.ts'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { FilterBar, TextFilter } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { When } from '../parts/parts.tsx'
import { type Column, ListTable, type ListState } from '../parts/table.tsx'
import { useUrlFilters, useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.customers

const COLUMNS: readonly Column<Customer>[] = [
  { title: t.email, cell: ({ email }) => email },
  { title: t.nameOf, cell: ({ name }) => name ?? '' },
  { title: t.externalId, cell: ({ externalId }) => externalId ?? '' },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

const NO_MORE = { hasMore: false, isLoadingMore: false, loadMore: () => undefined }

/** Returns all customers, or the first ones whose e-mail address, name or external id contains the text. */
function useFound(q: string | null): ListState<Customer> {
  const list = useList(customers.listCustomers, {})
  const found = useRead(finding.search, q === null ? null : { query: { q } })
  if (q === null) return list
  const { error, isPending, refetch } = found
  return { ...NO_MORE, items: found.data?.customers ?? [], error, isPending, retry: () => void refetch() }
}

export default function Customers({ me }: { me: Me }) {
  const [{ q }, setFilters, clear] = useUrlFilters({ q: null })
  const [, navigate] = useLocation()
  const [isCreating, creating] = useDisclosure(useUrlParameters().has('new'))
  const list = useFound(q)
  const create = me.permissions.includes('customers.write') && <Button onClick={creating.open}>{t.new}</Button>
  return (
    <Screen title={t.title} actions={create}>
      <FilterBar onClear={clear}>
        <TextFilter label={t.find} placeholder={t.findHint} value={q} onChange={(value) => setFilters({ q: value })} />
      </FilterBar>
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
