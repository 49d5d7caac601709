import type { Me } from '@keyward/contract/management/sign-in'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Card, Group, Select, SimpleGrid, Text } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useCall, useChange, useRead } from '../../api/hooks.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Fact, Waiting, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { text } from '../../text.ts'
import { Deliveries } from './deliveries.tsx'
import { EndpointWindow, SecretWindow } from './endpoint-window.tsx'
import { StateBadge, StateNotice } from './state.tsx'

const t = text.webhooks
/** The interval at which the endpoint is read again, because attempts change its state. */
const REFRESH_MS = 5_000
const MS_PER_HOUR = 3_600_000
const DAY_HOURS = '24'

/** The window that sends the events of a period again. */
function ReplayWindow({ id, onClose }: { id: string; onClose: () => void }) {
  const [hours, setHours] = useState(DAY_HOURS)
  const replay = useCall(webhookEndpoints.replayEvents, {
    done: ({ deliveries }) => t.replayed(deliveries),
    quiet: true,
  })
  const from = () => new Date(Date.now() - Number(hours) * MS_PER_HOUR).toISOString()
  return (
    <FormWindow
      title={t.replayTitle}
      action={t.replaySubmit}
      opened
      onClose={onClose}
      onSubmit={() => replay.mutateAsync({ params: { id }, body: { from: from() } })}
    >
      {(errors) => (
        <>
          <Text size="sm">{t.replayHint}</Text>
          <Select
            label={t.replayPeriod}
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
  const turnOn = useChange(() => set(true), { done: t.turnedOn })
  const turnOff = useChange(() => set(false), { done: t.turnedOff, undo: () => set(true) })
  return { turnOn, turnOff }
}

function Actions({ endpoint, onTurnOff }: { endpoint: WebhookEndpoint; onTurnOff: () => void }) {
  const { id, enabled } = endpoint
  const [, navigate] = useLocation()
  const [isEditing, setIsEditing] = useState(false)
  const [isReplaying, setIsReplaying] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const test = useCall(webhookEndpoints.testWebhookEndpoint, {
    onDone: (created) => navigate(`/webhooks/${id}?delivery=${created.id}`),
  })
  const rotate = useCall(webhookEndpoints.rotateWebhookSecret, {
    onDone: (rotated) => setSecret(rotated.secret ?? null),
  })
  const remove = useCall(webhookEndpoints.deleteWebhookEndpoint, {
    done: t.deleted,
    onDone: () => navigate('/webhooks'),
  })
  return (
    <>
      {enabled && (
        <>
          <Button onClick={() => test.mutate({ params: { id } })} loading={test.isPending}>
            {t.test}
          </Button>
          <Button variant="default" onClick={() => setIsReplaying(true)}>
            {t.replay}
          </Button>
        </>
      )}
      <Button variant="default" onClick={() => setIsEditing(true)}>
        {t.edit}
      </Button>
      <ConfirmButton
        label={t.rotate}
        title={t.rotateTitle}
        object={<bdi>{endpoint.url}</bdi>}
        consequence={t.rotateHint}
        isDangerous={false}
        onConfirm={() => rotate.mutateAsync({ params: { id } })}
      />
      {enabled && (
        <Button variant="default" onClick={onTurnOff}>
          {t.turnOff}
        </Button>
      )}
      <ConfirmButton
        label={t.delete}
        title={t.deleteTitle}
        object={<bdi>{endpoint.url}</bdi>}
        consequence={t.deleteHint}
        onConfirm={() => remove.mutateAsync({ params: { id } })}
      />
      {isEditing && <EndpointWindow before={endpoint} onClose={() => setIsEditing(false)} />}
      {isReplaying && <ReplayWindow id={id} onClose={() => setIsReplaying(false)} />}
      <SecretWindow secret={secret} onClose={() => setSecret(null)} />
    </>
  )
}

export default function Endpoint({ id, me }: { id: string; me: Me }) {
  const read = useRead(webhookEndpoints.readWebhookEndpoint, { params: { id } }, REFRESH_MS)
  const { turnOn, turnOff } = useTurning(id)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const endpoint = read.data
  const canWrite = me.permissions.includes('webhooks.write')
  return (
    <Screen
      title={endpoint.description ?? t.endpoint}
      actions={canWrite && <Actions endpoint={endpoint} onTurnOff={() => turnOff.mutate(undefined)} />}
    >
      <StateNotice endpoint={endpoint} onTurnOn={canWrite ? () => turnOn.mutate(undefined) : null} />
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, sm: 2 }} component="dl" m={0}>
          <Fact term={t.url}>
            <Copyable value={endpoint.url} />
          </Fact>
          <Fact term={t.types}>
            {endpoint.types.includes('*') ? t.everyEvent : <span className="mono">{endpoint.types.join(', ')}</span>}
          </Fact>
          <Fact term={t.state}>
            <Group gap="xs">
              <StateBadge endpoint={endpoint} />
            </Group>
          </Fact>
          <Fact term={text.licenses.createdOn}>
            <When at={endpoint.createdAt} />
          </Fact>
        </SimpleGrid>
      </Card>
      <Deliveries endpoint={endpoint} canWrite={canWrite} />
    </Screen>
  )
}
