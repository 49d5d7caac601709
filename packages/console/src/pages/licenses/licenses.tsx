/** The list of licenses, with filters in the URL, sorting by expiry, and actions on many licenses. */

import { type License, licenses } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'

import { readAll, useChange, useList } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { useWork } from '../../api/work.ts'
import { ProductField } from '../../parts/choose.tsx'
import { ExportButton } from '../../parts/export-button.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { KeyText, LastDay, StatusBadge, TextLink, When } from '../../parts/parts.tsx'
import { Slots } from '../../parts/slots.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { type Filters, useUrlFilters, useUrlSorting } from '../../parts/url.ts'
import { WorkPanel } from '../../parts/work-panel.tsx'
import { text } from '../../text.ts'
import { SelectedLicenses, UndoSelected } from './selected.tsx'
import { termOf } from './summary.tsx'

const t = text.licenses
const FILTERS = {
  status: null,
  productId: null,
  customerId: null,
  templateId: null,
  keyPrefix: null,
  email: null,
  within: null,
}
type Chosen = Filters<keyof typeof FILTERS>
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

function CustomerName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/customers/${id}`}>{name === '' ? '…' : name}</TextLink>
}

function ProductName({ id }: { id: string }) {
  return useName(id)
}

const COLUMNS: readonly Column<License>[] = [
  { title: t.key, cell: ({ key }) => <KeyText value={key} /> },
  { title: t.status, cell: ({ status }) => <StatusBadge status={status} /> },
  { title: t.product, cell: ({ productId }) => <ProductName id={productId} /> },
  { title: t.customer, cell: ({ customerId }) => <CustomerName id={customerId} /> },
  { title: t.machines, cell: ({ machines }) => <Slots {...machines} /> },
  {
    title: t.expires,
    cell: (one) => (one.policy.expiresAt === null ? termOf(one) : <LastDay at={one.policy.expiresAt} />),
    sortKey: 'expiresAt',
  },
  { title: t.createdOn, cell: ({ createdAt }) => <When at={createdAt} />, sortKey: 'createdAt' },
]

function isPeriod(days: string | null): days is string {
  return days !== null && Object.hasOwn(t.within, days)
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

function FilterFields({
  filters,
  onChange,
  onClear,
}: {
  filters: Chosen
  onChange: (changed: Partial<Chosen>) => void
  onClear: (() => void) | null
}) {
  const find = (value: string | null) => {
    const isEmail = value?.includes('@') === true
    onChange({ email: isEmail ? value : null, keyPrefix: isEmail ? null : value })
  }
  return (
    <FilterBar onClear={onClear}>
      <TextFilter label={t.find} placeholder={t.findHint} value={filters.keyPrefix ?? filters.email} onChange={find} />
      <ChoiceFilter
        label={t.status}
        names={text.statuses}
        value={filters.status}
        onChange={(status) => onChange({ status })}
      />
      <div className="filter">
        <ProductField value={filters.productId} onChange={(productId) => onChange({ productId })} isOptional />
      </div>
      <ChoiceFilter
        label={t.expiresWithin}
        names={t.within}
        value={filters.within}
        onChange={(within) => onChange({ within })}
      />
    </FilterBar>
  )
}

function csvRow({ key, status, productId, customerId, policy, machines, createdAt }: License) {
  const { type, expiresAt, maxMachines } = policy
  return { key, status, productId, customerId, type, expiresAt, maxMachines, usedMachines: machines.used, createdAt }
}

export default function Licenses({ me }: { me: Me }) {
  const [{ within, ...filters }, setFilters, clear] = useUrlFilters(FILTERS)
  const [sort, sorting] = useUrlSorting()
  const isByExpiry = isPeriod(within) && sort.sort === null
  const order = isByExpiry ? ({ sort: 'expiresAt', order: 'asc' } as const) : sort
  const input = { query: { ...filters, ...expiringWithin(within), ...order } }
  const list = useList(licenses.listLicenses, input)
  /** The licenses that match the filters, with those that the list does not show yet. */
  const [matching, setMatching] = useState<readonly License[]>([])
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const work = useWork('/licenses')
  const canWrite = me.permissions.includes('licenses.write')
  const create = canWrite && (
    <Button component={Link} href="/licenses/new">
      {t.new}
    </Button>
  )
  const importing = canWrite && (
    <Button variant="default" component={Link} href="/licenses/import">
      {text.licenseImport.open}
    </Button>
  )
  const selected = (matching.length > list.items.length ? matching : list.items).filter(({ id }) => ids.has(id))
  const selectMatching = useChange(() => readAll(licenses.listLicenses, input), {
    onDone: ({ items }) => {
      setMatching(items)
      setIds(new Set(items.map(({ id }) => id)))
    },
  })
  return (
    <Screen
      title={t.title}
      actions={
        <>
          <ExportButton operation={licenses.listLicenses} input={input} file="licenses" row={csvRow} />
          {importing}
          {create}
        </>
      }
    >
      {work && <WorkPanel work={work} actions={<UndoSelected />} dismiss={text.bulk.close} />}
      <FilterFields filters={{ ...filters, within }} onChange={setFilters} onClear={clear} />
      {selected.length > 0 && (
        <SelectedLicenses
          licenses={selected}
          onDone={() => setIds(new Set())}
          onSelectMatching={
            list.hasMore && selected.length === list.items.length ? () => selectMatching.mutate(undefined) : null
          }
          isSelecting={selectMatching.isPending}
        />
      )}
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/licenses/${id}`}
        label={t.title}
        sorting={isByExpiry ? { ...sorting, by: 'expiresAt', order: 'asc' } : sorting}
        selection={canWrite ? { ids, onChange: setIds, nameOf: ({ key }) => key } : undefined}
        empty={
          clear ? (
            t.emptyFiltered
          ) : (
            <>
              {t.empty}
              <Group>
                {importing}
                {create}
              </Group>
            </>
          )
        }
      />
    </Screen>
  )
}
