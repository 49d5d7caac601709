import type { WebhookEndpoint } from '@keyward/contract/management/webhooks'
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { IconAlertTriangle, IconPlayerPause } from '@tabler/icons-react'

import { DotBadge, When } from '../../parts/parts.tsx'
import { text } from '../../text.ts'

const t = text.webhooks

type State = 'on' | 'failing' | 'off' | 'disabled'

export function stateOf({ enabled, disabledReason, failingSince }: WebhookEndpoint): State {
  if (!enabled) return disabledReason === null ? 'off' : 'disabled'
  return failingSince === null ? 'on' : 'failing'
}

const COLORS: Record<State, string> = { on: 'teal', failing: 'orange', off: 'gray', disabled: 'red' }

export function StateBadge({ endpoint }: { endpoint: WebhookEndpoint }) {
  const state = stateOf(endpoint)
  return <DotBadge color={COLORS[state]}>{t[state]}</DotBadge>
}

/** Shows why an endpoint receives no events and what to do. Shows nothing if the endpoint receives events. */
export function StateNotice({ endpoint, onTurnOn }: { endpoint: WebhookEndpoint; onTurnOn: (() => void) | null }) {
  const state = stateOf(endpoint)
  if (state === 'on') return null
  const { disabledReason, failingSince } = endpoint
  const title = { failing: t.failingTitle, off: t.offTitle, disabled: t.disabledTitle }[state]
  const hint =
    state === 'failing' ? t.failingHint : disabledReason === null ? t.offHint : t.disabledHint[disabledReason]
  return (
    <Alert
      color={COLORS[state]}
      title={title}
      icon={state === 'off' ? <IconPlayerPause size={18} /> : <IconAlertTriangle size={18} />}
      role="status"
    >
      <Stack gap="sm">
        <Text size="sm" maw="60rem">
          {hint}
        </Text>
        {failingSince !== null && (
          <Text size="sm">
            {t.failingSince} <When at={failingSince} />
          </Text>
        )}
        {state !== 'failing' && onTurnOn !== null && (
          <Group>
            <Button size="xs" onClick={onTurnOn}>
              {t.turnOn}
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  )
}
