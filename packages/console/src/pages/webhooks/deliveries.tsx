/** The deliveries of an endpoint, with filters in the URL. A row opens the delivery with its attempts. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import { type Delivery, type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Anchor, Button, Stack, Text, Title } from '@mantine/core'

import { useCall, useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ChoiceFilter, FilterBar } from '../../parts/filters.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { DeliveryBadge, DeliveryWindow } from './delivery.tsx'
import { explainDelivery } from './outcome.ts'

const t = {
  causes: {
    EVENT: '',
    RESEND: 'sent again',
    REPLAY: 'sent again',
    TEST: 'test',
  } satisfies Record<Delivery['cause'], string>,
}
const FILTERS = { status: null, eventType: null }
const TYPE_NAMES = Object.fromEntries(EVENT_TYPES.map((type) => [type, type]))
/** The list is read repeatedly while the next attempt of a delivery is due within this time. */
const SOON_MS = 15_000

function isDue({ status, nextAttemptAt }: Delivery): boolean {
  return status === 'PENDING' && Date.parse(nextAttemptAt ?? '') < Date.now() + SOON_MS
}

export function Deliveries({ endpoint: { id, url, enabled } }: { endpoint: WebhookEndpoint }) {
  const may = useMay()
  const filters = useUrlFilters(FILTERS)
  const [query, , clear] = filters
  const [{ delivery: openId }, setOpen] = useUrlFilters({ delivery: null })
  const input = { params: { id }, query }
  const list = useList(webhookEndpoints.listWebhookDeliveries, input, (one) => enabled && isDue(one))
  const open = (delivery: string | null) => setOpen({ delivery })
  const resend = useCall(webhookEndpoints.resendWebhookDelivery, {
    done: 'Sending the event again.',
    onDone: (created) => open(created.id),
  })
  const send = (deliveryId: string) => resend.mutate({ params: { id, deliveryId } })
  const canSend = may('webhooks.write') && enabled
  const columns: Column<Delivery>[] = [
    {
      title: 'Event',
      cell: (one) => (
        <div>
          <Anchor
            component="button"
            size="sm"
            aria-label={`Open the delivery of ${one.eventType}`}
            onClick={() => open(one.id)}
          >
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
    { title: 'Status', cell: (one) => <DeliveryBadge delivery={one} /> },
    {
      title: 'What happened',
      cell: (one) => (
        <Text size="sm" miw={220}>
          {explainDelivery(one)}
        </Text>
      ),
    },
    { title: 'Attempts', cell: ({ attempts }) => attempts.length, isNumber: true },
    { title: 'Last attempt', cell: ({ attempts }) => <When at={attempts.at(-1)?.at ?? null} never="" /> },
  ]
  if (canSend)
    columns.push({
      title: text.actions,
      cell: (one) => (
        <Button size="xs" variant="default" onClick={() => send(one.id)}>
          Send again
        </Button>
      ),
    })
  const shown = list.items.find((one) => one.id === openId)
  return (
    <Stack gap="sm" component="section" aria-label="Deliveries">
      <Title order={2} size="h4">
        Deliveries
      </Title>
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="status" label="Status" names={text.deliveries} />
        <ChoiceFilter filters={filters} name="eventType" label="Event" names={TYPE_NAMES} />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        label="Deliveries"
        empty={
          clear
            ? 'No delivery matches these filters.'
            : 'No deliveries in the last 30 days. Send a test event to try the endpoint.'
        }
      />
      {shown && (
        <DeliveryWindow
          delivery={shown}
          url={url}
          onClose={() => open(null)}
          onAgain={canSend ? () => send(shown.id) : null}
          isSending={resend.isPending}
        />
      )}
    </Stack>
  )
}
