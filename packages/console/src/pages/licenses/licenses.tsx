/** The list of licenses, with filters in the URL, sorting by expiry, and actions on many licenses. */

import { license, type License } from '@keyward/contract'
import { product } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group } from '@mantine/core'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { useWork } from '../../api/work.ts'
import { ProductField } from '../../parts/choose.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Screen, StatusBadge, TextLink, When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { WorkPanel } from '../../parts/work-panel.tsx'
import { text } from '../../text.ts'
import { SelectedLicenses, UndoSelected } from './selected.tsx'
import { termOf } from './summary.tsx'

const t = text.licenses
const ABSENT = { status: '', productId: '', customerId: '', key: '', email: '', within: '', sort: '', order: '' }
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

function CustomerName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/customers/${id}`}>{name === '' ? '…' : name}</TextLink>
}

function useColumns(): readonly Column<License>[] {
  const { items } = useList('/products', product)
  return useMemo(() => {
    const products = new Map(items.map(({ id, name }) => [id, name]))
    return [
      { title: t.key, cell: ({ key }) => <span className="mono">{key}</span> },
      { title: t.status, cell: ({ status }) => <StatusBadge status={status} /> },
      { title: t.product, cell: ({ productId }) => products.get(productId) ?? '' },
      { title: t.customer, cell: ({ customerId }) => <CustomerName id={customerId} /> },
      { title: t.machines, cell: ({ machines }) => `${machines.used} / ${machines.max ?? '∞'}`, isNumber: true },
      {
        title: t.expires,
        cell: (one) => <When at={one.policy.expiresAt} never={termOf(one)} />,
        sortKey: 'expiresAt',
      },
      { title: t.createdOn, cell: ({ createdAt }) => <When at={createdAt} />, sortKey: 'createdAt' },
    ]
  }, [items])
}

/**
 * Converts the filters of the URL to query parameters of the API. Times are whole hours, so that the query stays the same within an hour.
 */
function queryOf({ within, ...filters }: typeof ABSENT): Record<string, string> {
  if (within === '') return filters
  const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  return {
    ...filters,
    expiresAfter: new Date(now).toISOString(),
    expiresBefore: new Date(now + Number(within) * DAY_MS).toISOString(),
    ...(filters.sort === '' && { sort: 'expiresAt', order: 'asc' }),
  }
}

function Filters({
  filters,
  onChange,
}: {
  filters: typeof ABSENT
  onChange: (changed: Partial<Record<keyof typeof ABSENT, string | null>>) => void
}) {
  const { sort: _sort, order: _order, ...chosen } = filters
  const find = (value: string | null) => {
    const isEmail = value?.includes('@') === true
    onChange({ email: isEmail ? value : null, key: isEmail ? null : value })
  }
  return (
    <FilterBar onClear={Object.values(chosen).some((value) => value !== '') ? () => onChange(ABSENT) : null}>
      <TextFilter label={t.find} placeholder={t.findHint} value={filters.key || filters.email} onChange={find} />
      <ChoiceFilter
        label={t.status}
        names={text.statuses}
        value={filters.status}
        onChange={(status) => onChange({ status })}
      />
      <div className="filter">
        <ProductField
          value={filters.productId === '' ? null : filters.productId}
          onChange={(productId) => onChange({ productId })}
          isOptional
        />
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

export default function Licenses({ me }: { me: Me }) {
  const [filters, , setFilters] = useUrlFilters(ABSENT)
  const query = queryOf(filters)
  const list = useList('/licenses', license, query)
  const columns = useColumns()
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const work = useWork('/licenses')
  const { sort, order, ...chosen } = filters
  const isFiltered = Object.values(chosen).some((value) => value !== '')
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
  const selected = list.items.filter(({ id }) => ids.has(id))
  return (
    <Screen
      title={t.title}
      actions={
        <>
          {importing}
          {create}
        </>
      }
    >
      {work && <WorkPanel work={work} actions={<UndoSelected />} dismiss={text.bulk.close} />}
      <Filters filters={filters} onChange={setFilters} />
      {selected.length > 0 && <SelectedLicenses licenses={selected} onDone={() => setIds(new Set())} />}
      <ListTable
        list={list}
        columns={columns}
        href={({ id }) => `/licenses/${id}`}
        label={t.title}
        minWidth={1000}
        sorting={{
          by: query['sort'] ?? sort,
          order: (query['order'] ?? order) === 'asc' ? 'asc' : 'desc',
          onSort: (by, next) => setFilters({ sort: by, order: next }),
        }}
        selection={canWrite ? { ids, onChange: setIds, nameOf: ({ key }) => key } : undefined}
        empty={
          isFiltered ? (
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
