/** The list of licenses, with filters in the URL, sorting by expiry, and actions on many licenses. */

import { type License, licenses, organizations } from '@keyward/contract'
import { Button, Group } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'

import { useList, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ProductField } from '../../parts/choose.tsx'
import { ExportButton } from '../../parts/export-button.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Name } from '../../parts/name.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { KeyText, LastDay, StatusBadge, When } from '../../parts/parts.tsx'
import { Slots } from '../../parts/slots.tsx'
import { type Column, type ListState, ListTable } from '../../parts/table.tsx'
import { type UrlFilters, useUrlFilters, useUrlSorting } from '../../parts/url.ts'
import { type View, Views } from '../../parts/views.tsx'
import { text } from '../../text.ts'
import { targetOf } from './job-target.ts'
import { Jobs } from './jobs.tsx'
import { SaveView, useSavedViews } from './saved-views.tsx'
import { SelectedLicenses } from './selected.tsx'
import { termOf } from './summary.tsx'

const WITHIN = { '7': '7 days', '30': '30 days', '90': '90 days' }
const FILTERS = {
  status: null,
  productId: null,
  customerId: null,
  templateId: null,
  keyPrefix: null,
  email: null,
  within: null,
}
type Query = Readonly<Partial<Record<keyof typeof FILTERS, string>>>
const VIEWS: readonly View<Query>[] = [
  { label: 'All', query: {} },
  { label: 'Expiring', query: { status: 'active', within: '30' } },
  { label: 'Suspended', query: { status: 'suspended' } },
  { label: 'Expired', query: { status: 'expired' } },
  { label: 'Revoked', query: { status: 'revoked' } },
]
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const COLUMNS: readonly Column<License>[] = [
  { title: 'License key', cell: ({ key }) => <KeyText value={key} /> },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Product', cell: ({ productId }) => <Name id={productId} /> },
  {
    title: 'Customer',
    cell: ({ customerId }) => <Name id={customerId} href={`/customers/${customerId}`} fallback="…" />,
  },
  { title: 'Machines', cell: ({ machines }) => <Slots {...machines} /> },
  {
    title: 'Expires',
    cell: (one) => (one.policy.expiresAt === null ? termOf(one) : <LastDay at={one.policy.expiresAt} />),
    sortKey: 'expiresAt',
  },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} />, sortKey: 'createdAt' },
]

function isPeriod(days: string | null): days is string {
  return days !== null && Object.hasOwn(WITHIN, days)
}

/** Returns the licenses that expire within the days, as whole hours, so that the query stays the same within an hour. */
function expiringWithin(days: string | null) {
  if (!isPeriod(days)) return {}
  const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  return {
    expiresAfter: new Date(now).toISOString(),
    expiresBefore: new Date(now + Number(days) * DAY_MS).toISOString(),
  }
}

function CountOfView({ query: { within, ...query } }: { query: Query }) {
  const { data } = useRead(licenses.listLicenses, {
    query: { ...query, ...expiringWithin(within ?? null), limit: 1, total: 'true' },
  })
  return data?.total?.toLocaleString() ?? ''
}

function FilterFields({ filters, end }: { filters: UrlFilters<keyof typeof FILTERS>; end: ReactNode }) {
  const [{ keyPrefix, email, productId }, change, clear] = filters
  const find = (value: string | null) => {
    const isEmail = value?.includes('@') === true
    change({ email: isEmail ? value : null, keyPrefix: isEmail ? null : value })
  }
  return (
    <FilterBar onClear={clear}>
      <TextFilter
        label="License key or e-mail"
        placeholder="Beginning of the key, or e-mail"
        value={keyPrefix ?? email}
        onChange={find}
      />
      <ChoiceFilter filters={filters} name="status" label="Status" names={text.statuses} />
      <div className="filter">
        <ProductField value={productId} onChange={(id) => change({ productId: id })} isOptional />
      </div>
      <ChoiceFilter filters={filters} name="within" label="Expires within" names={WITHIN} />
      {end}
    </FilterBar>
  )
}

const NOTHING: ReadonlySet<string> = new Set()

/**
 * The selected licenses: some that the list shows, or all that match its filters, also those that it does not show yet. Other filters
 * clear the selection, so that an action never concerns licenses that the list no longer contains.
 */
function useSelection({ items, hasMore }: ListState<License>, filter: Readonly<Record<string, string | null>>) {
  const filters = JSON.stringify(filter)
  const [stored, setStored] = useState({ filters, ids: NOTHING, isWhole: false })
  if (stored.filters !== filters) setStored({ filters, ids: NOTHING, isWhole: false })
  const shown = items.map(({ id }) => id)
  const isWhole = stored.isWhole && stored.filters === filters
  const ids = isWhole ? shown : shown.filter((id) => stored.ids.has(id))
  const hasRest = hasMore && ids.length > 0 && ids.length === shown.length
  const counting = useRead(licenses.listLicenses, hasRest ? { query: { ...filter, limit: 1, total: 'true' } } : null)
  const total = hasRest ? counting.data?.total : shown.length
  const target = targetOf(filter)
  const select = (chosen: ReadonlySet<string>) => setStored({ filters, ids: chosen, isWhole: false })
  const onSelect = () => setStored({ filters, ids: NOTHING, isWhole: true })
  return {
    ids: new Set(ids),
    select,
    clear: () => select(NOTHING),
    selected: ids.length > 0 && {
      target: isWhole && target ? target : { ids },
      count: isWhole ? (total ?? ids.length) : ids.length,
      whole: hasRest && !isWhole && target && total !== undefined ? { target, total, onSelect } : null,
    },
  }
}

export default function Licenses() {
  const may = useMay()
  const filters = useUrlFilters(FILTERS)
  const [{ within, ...query }, , clear] = filters
  const [sort, sorting] = useUrlSorting()
  const isByExpiry = isPeriod(within) && sort.sort === null
  const order = isByExpiry ? ({ sort: 'expiresAt', order: 'asc' } as const) : sort
  const filter = { ...query, ...expiringWithin(within) }
  const input = { query: { ...filter, ...order } }
  const list = useList(licenses.listLicenses, input)
  const { data: organization } = useRead(organizations.readOwnOrganization, {})
  const selection = useSelection(list, filter)
  const saved = useSavedViews()
  const canWrite = may('licenses.write')
  const create = canWrite && (
    <Button component={Link} href="/licenses/new">
      New license
    </Button>
  )
  const importing = canWrite && (
    <Button variant="default" component={Link} href="/licenses/import">
      Import
    </Button>
  )
  return (
    <Screen
      title="Licenses"
      actions={
        <>
          <ExportButton operation={licenses.exportLicenses} input={{ query: filter }} />
          {importing}
          {create}
        </>
      }
    >
      <Jobs />
      <Views
        views={[...VIEWS, ...saved[0]]}
        filters={filters[0]}
        items={organization?.quotas.licenses?.used ?? undefined}
        Count={CountOfView}
      />
      <FilterFields filters={filters} end={<SaveView fixed={VIEWS} saved={saved} filters={filters[0]} />} />
      {selection.selected && <SelectedLicenses {...selection.selected} onDone={selection.clear} />}
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/licenses/${id}`}
        label="Licenses"
        sorting={isByExpiry ? { ...sorting, by: 'expiresAt', order: 'asc' } : sorting}
        selection={canWrite ? { ids: selection.ids, onChange: selection.select, nameOf: ({ key }) => key } : undefined}
        empty={
          clear
            ? 'No license matches these filters.'
            : 'No licenses yet. Create your first license for a product and a customer, or import a CSV file.'
        }
        create={
          !clear && (
            <Group>
              {importing}
              {create}
            </Group>
          )
        }
      />
    </Screen>
  )
}
