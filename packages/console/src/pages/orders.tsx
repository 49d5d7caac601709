/** The lines of orders, with their licenses. */

import { type Order, orders } from '@keyward/contract/management/orders'
import { Group } from '@mantine/core'

import { useList } from '../api/hooks.ts'
import { useName } from '../api/names.ts'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, KeyText, TextLink, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.orders
const FILTERS = { state: null }
const COLORS = { paid: 'teal', canceled: 'gray', refunded: 'red', disputed: 'yellow' } as const

function TemplateName({ id }: { id: string }) {
  return <TextLink href={`/templates/${id}`}>{useName(id)}</TextLink>
}

const COLUMNS: readonly Column<Order>[] = [
  { title: t.shop, cell: ({ provider }) => provider },
  {
    title: t.order,
    cell: ({ orderId, line }) => (
      <span className="mono">
        {orderId} / {line}
      </span>
    ),
  },
  { title: t.state, cell: ({ state }) => <DotBadge color={COLORS[state]}>{t.states[state]}</DotBadge> },
  { title: text.templates.one, cell: ({ templateId }) => <TemplateName id={templateId} /> },
  {
    title: text.nav.licenses,
    cell: ({ licenses }) => (
      <Group gap="sm">
        {licenses.map(({ id, key }) => (
          <TextLink key={id} href={`/licenses/${id}`}>
            <KeyText value={key} />
          </TextLink>
        ))}
      </Group>
    ),
  },
  { title: t.occurred, cell: ({ occurredAt }) => <When at={occurredAt} /> },
]

export default function Orders() {
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const list = useList(orders.listOrders, { query: filters })
  return (
    <Screen title={t.title}>
      <FilterBar onClear={clear}>
        <ChoiceFilter
          label={t.state}
          names={t.states}
          value={filters.state}
          onChange={(state) => setFilters({ state })}
        />
      </FilterBar>
      <ListTable list={list} columns={COLUMNS} label={t.title} empty={t.empty} />
    </Screen>
  )
}
