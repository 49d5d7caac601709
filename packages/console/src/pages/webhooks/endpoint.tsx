import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Select, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Facts, Waiting, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { counted } from '../../text.ts'
import { Deliveries } from './deliveries.tsx'
import { EndpointSecret, EndpointWindow } from './endpoint-window.tsx'
import { EventTypes, StateBadge, StateNotice } from './state.tsx'

const t = {
  replayPeriods: {
    '1': 'The last hour',
    '24': 'The last 24 hours',
    '168': 'The last 7 days',
    '720': 'The last 30 days',
  },
}
/** The interval at which the endpoint is read again, because attempts change its state. */
const REFRESH_MS = 5_000
const MS_PER_HOUR = 3_600_000
const DAY_HOURS = '24'

/** The window that sends the events of a period again. */
function ReplayWindow({ id, onClose }: { id: string; onClose: () => void }) {
  const [hours, setHours] = useState(DAY_HOURS)
  const replay = useCall(webhookEndpoints.replayEvents, {
    done: ({ deliveries }) =>
      deliveries === 0
        ? 'No event of this period has a type of this endpoint.'
        : `Sending ${counted(deliveries, 'event')} again.`,
    quiet: true,
  })
  const from = () => new Date(Date.now() - Number(hours) * MS_PER_HOUR).toISOString()
  return (
    <FormWindow
      title="Send events of a period again"
      action="Send again"
      onClose={onClose}
      onSubmit={() => replay.mutateAsync({ params: { id }, body: { from: from() } })}
    >
      {(errors) => (
        <>
          <Text size="sm">
            Sends the events of the types of this endpoint again, also those that it has received before. A receiver
            skips them by their id.
          </Text>
          <Select
            label="Period"
            data={Object.entries(t.replayPeriods).map(([value, label]) => ({ value, label }))}
            value={hours}
            onChange={(value) => setHours(value ?? DAY_HOURS)}
            allowDeselect={false}
            error={Object.values(errors)[0]}
          />
        </>
      )}
    </FormWindow>
  )
}

function useTurning(id: string) {
  const set = (enabled: boolean) => call(webhookEndpoints.updateWebhookEndpoint, { params: { id }, body: { enabled } })
  const turnOn = useChange(() => set(true), { done: 'Turned the endpoint on. It receives events from now on.' })
  const turnOff = useChange(() => set(false), { done: 'Turned the endpoint off.', undo: () => set(true) })
  return { turnOn, turnOff }
}

function Actions({ endpoint, onTurnOff }: { endpoint: WebhookEndpoint; onTurnOff: () => void }) {
  const { id, enabled } = endpoint
  const [, navigate] = useLocation()
  const [isEditing, editing] = useDisclosure(false)
  const [isReplaying, replaying] = useDisclosure(false)
  const [secret, setSecret] = useState<string | null>(null)
  const test = useCall(webhookEndpoints.testWebhookEndpoint, {
    onDone: (created) => navigate(`/webhooks/${id}?delivery=${created.id}`),
  })
  const rotate = useCall(webhookEndpoints.rotateWebhookSecret, {
    onDone: (rotated) => setSecret(rotated.secret ?? null),
  })
  const remove = useCall(webhookEndpoints.deleteWebhookEndpoint, {
    done: 'Deleted the endpoint.',
    onDone: () => navigate('/webhooks'),
  })
  return (
    <>
      {enabled && (
        <>
          <Button onClick={() => test.mutate({ params: { id } })} loading={test.isPending}>
            Send a test event
          </Button>
          <Button variant="default" onClick={replaying.open}>
            Send missed events
          </Button>
        </>
      )}
      <Button variant="default" onClick={editing.open}>
        Change
      </Button>
      <ConfirmButton
        label="Replace the secret"
        title="Replace the secret?"
        object={<bdi>{endpoint.url}</bdi>}
        consequence="Shows a new secret once. For 24 hours, Keyward signs each request with both secrets, so change your receiver within this time."
        isDangerous={false}
        onConfirm={() => rotate.mutateAsync({ params: { id } })}
      />
      {enabled && (
        <Button variant="default" onClick={onTurnOff}>
          Turn off
        </Button>
      )}
      <ConfirmButton
        label="Delete"
        title="Delete this endpoint?"
        object={<bdi>{endpoint.url}</bdi>}
        consequence="Its deliveries are deleted too, and events that have not been delivered are no longer sent. A deletion cannot be undone."
        onConfirm={() => remove.mutateAsync({ params: { id } })}
      />
      {isEditing && <EndpointWindow before={endpoint} onClose={editing.close} />}
      {isReplaying && <ReplayWindow id={id} onClose={replaying.close} />}
      {secret !== null && <EndpointSecret secret={secret} onClose={() => setSecret(null)} />}
    </>
  )
}

export default function Endpoint({ id }: { id: string }) {
  const may = useMay()
  const read = useRead(webhookEndpoints.readWebhookEndpoint, { params: { id } }, REFRESH_MS)
  const { turnOn, turnOff } = useTurning(id)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const endpoint = read.data
  const canWrite = may('webhooks.write')
  return (
    <Screen
      title={endpoint.description ?? 'Endpoint'}
      actions={canWrite && <Actions endpoint={endpoint} onTurnOff={() => turnOff.mutate(undefined)} />}
    >
      <StateNotice endpoint={endpoint} onTurnOn={canWrite ? () => turnOn.mutate(undefined) : null} />
      <Facts
        facts={{
          URL: <Copyable value={endpoint.url} />,
          'Events to send': <EventTypes types={endpoint.types} />,
          State: <StateBadge endpoint={endpoint} />,
          Created: <When at={endpoint.createdAt} />,
        }}
        most={2}
      />
      <Deliveries endpoint={endpoint} />
    </Screen>
  )
}
