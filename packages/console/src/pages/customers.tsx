import { type Customer, customers } from '@keyward/contract'
import { search as finding } from '@keyward/contract/management/search'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from 'wouter'

import { useList, useRead, wholeList } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { ExportButton } from '../parts/export-button.tsx'
import { FilterBar, TextFilter } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { When } from '../parts/parts.tsx'
import { type Column, ListTable, type ListState } from '../parts/table.tsx'
import { useUrlFilters, useUrlParameters } from '../parts/url.ts'

const COLUMNS: readonly Column<Customer>[] = [
  { title: 'E-mail', cell: ({ email }) => email },
  { title: 'Name', cell: ({ name }) => name ?? '' },
  { title: 'External id', cell: ({ externalId }) => externalId ?? '' },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

/** Returns all customers, or the first ones whose e-mail address, name or external id contains the text. */
function useFound(q: string | null): ListState<Customer> {
  const list = useList(customers.listCustomers, {})
  const found = useRead(finding.search, q === null ? null : { query: { q } })
  return q === null ? list : wholeList(found, found.data?.customers)
}

export default function Customers() {
  const may = useMay()
  const [{ q }, setFilters, clear] = useUrlFilters({ q: null })
  const [, navigate] = useLocation()
  const [isCreating, creating] = useDisclosure(useUrlParameters().has('new'))
  const list = useFound(q)
  const create = may('customers.write') && <Button onClick={creating.open}>New customer</Button>
  return (
    <Screen
      title="Customers"
      actions={
        <>
          <ExportButton operation={customers.exportCustomers} input={{}} />
          {create}
        </>
      }
    >
      <FilterBar onClear={clear}>
        <TextFilter
          label="E-mail, name or external id"
          placeholder="At least three characters"
          value={q}
          onChange={(value) => setFilters({ q: value })}
        />
      </FilterBar>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/customers/${id}`}
        label="Customers"
        empty={
          clear
            ? 'No customer contains this text. Enter at least three characters.'
            : 'No customers yet. Create a customer before the first license.'
        }
        create={!clear && create}
      />
      {isCreating && (
        <CustomerWindow before={null} onClose={creating.close} onCreated={({ id }) => navigate(`/customers/${id}`)} />
      )}
    </Screen>
  )
}
