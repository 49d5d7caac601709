/** The deliveries of an endpoint, with filters in the URL. A row opens the delivery with its attempts. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import { delivery, type Delivery, type WebhookEndpoint } from '@keyward/contract/management/webhooks'
import { Anchor, Button, Stack, Text, Title } from '@mantine/core'

import { call } from '../../api/client.ts'
import { useChange, useList } from '../../api/hooks.ts'
import { ChoiceFilter, FilterBar } from '../../parts/filters.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { DeliveryBadge, DeliveryWindow } from './delivery.tsx'
import { explainDelivery } from './outcome.ts'

const t = text.deliveries
const ABSENT = { status: '', eventType: '', delivery: '' }
const TYPE_NAMES = Object.fromEntries(EVENT_TYPES.map((type) => [type, type]))
/** The list is read repeatedly while the next attempt of a delivery is due within this time. */
const SOON_MS = 15_000

function isDue({ status, nextAttemptAt }: Delivery): boolean {
  return status === 'PENDING' && Date.parse(nextAttemptAt ?? '') < Date.now() + SOON_MS
}

export function Deliveries({
  endpoint: { id, url, enabled },
  canWrite,
}: {
  endpoint: WebhookEndpoint
  canWrite: boolean
}) {
  const [{ delivery: openId, ...filters }, setFilter, setFilters] = useUrlFilters(ABSENT)
  const path = `/webhook-endpoints/${id}/deliveries`
  const list = useList(path, delivery, filters, (one) => enabled && isDue(one))
  const open = (deliveryId: string | null) => setFilter('delivery', deliveryId)
  const send = useChange(
    (deliveryId: string) => call({ method: 'POST', path: `${path}/${deliveryId}/resend` }, delivery),
    { done: t.sentAgain, onDone: (created) => open(created.id) },
  )
  const canSend = canWrite && enabled
  const columns: Column<Delivery>[] = [
    {
      title: t.event,
      cell: (one) => (
        <div>
          <Anchor component="button" size="sm" aria-label={t.open(one.eventType)} onClick={() => open(one.id)}>
            <span className="mono event-type">{one.eventType}</span>
          </Anchor>
          {one.cause !== 'EVENT' && (
            <Text size="xs" c="dimmed">
              {t.causes[one.cause]}
            </Text>
          )}
        </div>
      ),
    },
    { title: t.status, cell: (one) => <DeliveryBadge delivery={one} /> },
    {
      title: t.result,
      cell: (one) => (
        <Text size="sm" miw={220}>
          {explainDelivery(one)}
        </Text>
      ),
    },
    { title: t.attempts, cell: ({ attempts }) => attempts.length, isNumber: true },
    { title: t.time, cell: ({ attempts }) => <When at={attempts.at(-1)?.at ?? null} never="" /> },
  ]
  if (canSend)
    columns.push({
      title: text.actions,
      cell: (one) => (
        <Button size="xs" variant="default" onClick={() => send.mutate(one.id)}>
          {t.again}
        </Button>
      ),
    })
  const shown = list.items.find((one) => one.id === openId)
  const isFiltered = filters.status !== '' || filters.eventType !== ''
  return (
    <Stack gap="sm" component="section" aria-label={t.title}>
      <Title order={2} size="h4">
        {t.title}
      </Title>
      <FilterBar onClear={isFiltered ? () => setFilters(ABSENT) : null}>
        <ChoiceFilter
          label={t.status}
          names={t.statuses}
          value={filters.status}
          onChange={(value) => setFilter('status', value)}
        />
        <ChoiceFilter
          label={t.event}
          names={TYPE_NAMES}
          value={filters.eventType}
          onChange={(value) => setFilter('eventType', value)}
        />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        label={t.title}
        minWidth={880}
        empty={isFiltered ? t.emptyFiltered : t.empty}
      />
      {shown && (
        <DeliveryWindow
          delivery={shown}
          url={url}
          onClose={() => open(null)}
          onAgain={canSend ? () => send.mutate(shown.id) : null}
          isSending={send.isPending}
        />
      )}
    </Stack>
  )
}
