/** A connection to a shop, with the URL to enter in the shop and the events that have arrived. */

import { commerce, type Connection, type ShopEvent } from '@keyward/contract/management/commerce'
import { urlOf } from '@keyward/contract/operations'
import { Button, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from 'wouter'

import { useCall, useList, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { ChoiceFilter, FilterBar } from '../../parts/filters.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, DotBadge, Facts, Waiting, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { ConnectionWindow } from './connection-window.tsx'
import { EVENT_STATES, MODES, SHOPS } from './names.ts'

const COLORS = { PENDING: 'blue', WAITING: 'yellow', DONE: 'teal', IGNORED: 'gray', FAILED: 'red' } as const
const FILTERS = { state: null }
/** The list is read repeatedly while the next attempt of an event is due within this time. */
const SOON_MS = 15_000

const isDue = ({ nextAttemptAt }: ShopEvent) => Date.parse(nextAttemptAt ?? '') < Date.now() + SOON_MS

function Actions({ connection }: { connection: Connection }) {
  const [, navigate] = useLocation()
  const [isEditing, editing] = useDisclosure(false)
  const remove = useCall(commerce.deleteConnection, {
    done: 'Deleted the connection.',
    onDone: () => navigate('/shops'),
  })
  return (
    <>
      <Button variant="default" onClick={editing.open}>
        Change
      </Button>
      <ConfirmButton
        label="Delete"
        title="Delete this connection?"
        object={connection.name}
        consequence="Its received events are deleted too, and further events of the shop are rejected. Orders and licenses stay. A deletion cannot be undone."
        onConfirm={() => remove.mutateAsync({ params: { id: connection.id } })}
      />
      {isEditing && <ConnectionWindow before={connection} onClose={editing.close} />}
    </>
  )
}

function Inbox({ id }: { id: string }) {
  const may = useMay()
  const filters = useUrlFilters(FILTERS)
  const [query, , clear] = filters
  const list = useList(commerce.listShopEvents, { params: { id }, query }, isDue)
  const retry = useCall(commerce.retryShopEvent, { done: 'Attempting the event again.' })
  const columns: Column<ShopEvent>[] = [
    { title: 'Event', cell: ({ type }) => <span className="mono event-type">{type}</span> },
    { title: 'State', cell: ({ state }) => <DotBadge color={COLORS[state]}>{EVENT_STATES[state]}</DotBadge> },
    { title: 'Order', cell: ({ orderId }) => orderId !== null && <span className="mono">{orderId}</span> },
    { title: 'What happened', cell: ({ error }) => error },
    { title: 'Received', cell: ({ receivedAt }) => <When at={receivedAt} /> },
  ]
  if (may('orders.write'))
    columns.push({
      title: text.actions,
      cell: ({ id: eventId, state }) =>
        (state === 'FAILED' || state === 'WAITING') && (
          <Button size="xs" variant="default" onClick={() => retry.mutate({ params: { id, eventId } })}>
            Try again
          </Button>
        ),
    })
  return (
    <Stack gap="sm" component="section" aria-label="Received events">
      <Title order={2} size="h4">
        Received events
      </Title>
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="state" label="State" names={EVENT_STATES} />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        label="Received events"
        empty={
          clear
            ? 'No event matches this filter.'
            : 'No event has arrived. Enter the URL in the shop, and send a test event or make a test payment.'
        }
      />
    </Stack>
  )
}

export default function ShopConnection({ id }: { id: string }) {
  const may = useMay()
  const read = useRead(commerce.readConnection, { params: { id } })
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { data: connection } = read
  const url = `${window.location.origin}${urlOf(commerce.receiveShopEvents, { params: { id } })}`
  return (
    <Screen title={connection.name} actions={may('orders.write') && <Actions connection={connection} />}>
      <Text c="dimmed">Enter this URL as the address of a webhook in the shop.</Text>
      <Facts
        facts={{
          URL: <Copyable value={url} />,
          Shop: SHOPS[connection.shop],
          Mode: MODES[connection.mode],
          Payments: connection.states.map((state) => text.orderStates[state]).join(', '),
        }}
        most={2}
      />
      <Inbox id={id} />
    </Screen>
  )
}
