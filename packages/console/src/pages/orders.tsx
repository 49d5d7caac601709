/** The lines of orders, with their licenses. */

import { type Order, orders } from '@keyward/contract/management/orders'
import { Group } from '@mantine/core'

import { useList } from '../api/hooks.ts'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { Name } from '../parts/name.tsx'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, KeyText, TextLink, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const FILTERS = { state: null }
const COLORS = { paid: 'teal', canceled: 'gray', refunded: 'red', disputed: 'yellow' } as const

const COLUMNS: readonly Column<Order>[] = [
  { title: 'Shop', cell: ({ provider }) => provider },
  {
    title: 'Order and line',
    cell: ({ orderId, line }) => (
      <span className="mono">
        {orderId} / {line}
      </span>
    ),
  },
  { title: 'State', cell: ({ state }) => <DotBadge color={COLORS[state]}>{text.orderStates[state]}</DotBadge> },
  { title: 'Template', cell: ({ templateId }) => <Name id={templateId} href={`/templates/${templateId}`} /> },
  {
    title: 'Licenses',
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
  { title: 'Last change', cell: ({ occurredAt }) => <When at={occurredAt} /> },
]

export default function Orders() {
  const filters = useUrlFilters(FILTERS)
  const [query, , clear] = filters
  const list = useList(orders.listOrders, { query })
  return (
    <Screen title="Orders">
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="state" label="State" names={text.orderStates} />
      </FilterBar>
      <ListTable
        list={list}
        columns={COLUMNS}
        label="Orders"
        empty="No orders yet. Connect a shop, or put them through the API."
      />
    </Screen>
  )
}
