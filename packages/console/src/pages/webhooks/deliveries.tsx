/** The deliveries of an endpoint, with filters in the URL. A row opens the delivery with its attempts. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import { type Delivery, type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Anchor, Button, Stack, Text, Title } from '@mantine/core'

import { useCall, useList } from '../../api/hooks.ts'
import { ChoiceFilter, FilterBar } from '../../parts/filters.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { DeliveryBadge, DeliveryWindow } from './delivery.tsx'
import { explainDelivery } from './outcome.ts'

const t = text.deliveries
const FILTERS = { status: null, eventType: null }
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
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const [{ delivery: openId }, setOpen] = useUrlFilters({ delivery: null })
  const input = { params: { id }, query: filters }
  const list = useList(webhookEndpoints.listWebhookDeliveries, input, (one) => enabled && isDue(one))
  const open = (delivery: string | null) => setOpen({ delivery })
  const resend = useCall(webhookEndpoints.resendWebhookDelivery, {
    done: t.sentAgain,
    onDone: (created) => open(created.id),
  })
  const send = (deliveryId: string) => resend.mutate({ params: { id, deliveryId } })
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
        <Button size="xs" variant="default" onClick={() => send(one.id)}>
          {t.again}
        </Button>
      ),
    })
  const shown = list.items.find((one) => one.id === openId)
  return (
    <Stack gap="sm" component="section" aria-label={t.title}>
      <Title order={2} size="h4">
        {t.title}
      </Title>
      <FilterBar onClear={clear}>
        <ChoiceFilter
          label={t.status}
          names={t.statuses}
          value={filters.status}
          onChange={(status) => setFilters({ status })}
        />
        <ChoiceFilter
          label={t.event}
          names={TYPE_NAMES}
          value={filters.eventType}
          onChange={(eventType) => setFilters({ eventType })}
        />
      </FilterBar>
      <ListTable list={list} columns={columns} label={t.title} empty={clear ? t.emptyFiltered : t.empty} />
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
