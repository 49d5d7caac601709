import type { WebhookEndpoint } from '@keyward/contract/management/webhooks'
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { IconAlertTriangle, IconPlayerPause } from '@tabler/icons-react'

import { DotBadge, When } from '../../parts/parts.tsx'

const t = {
  on: 'Receives events',
  failing: 'Failing',
  off: 'Turned off',
  disabled: 'Disabled by Keyward',
  disabledHint: {
    GONE: 'The receiver responded with 410 Gone, which means that it wants no more events. If that was a mistake, correct the receiver. Then turn the endpoint on, and send the missed events again.',
    FAILING:
      'For five days, no attempt has succeeded. The deliveries below contain the responses. Correct the receiver. Then turn the endpoint on, and send the missed events again.',
  },
}

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
  const title = {
    failing: 'This endpoint is failing',
    off: 'This endpoint is turned off',
    disabled: 'Keyward has disabled this endpoint',
  }[state]
  const hint =
    state === 'failing'
      ? 'The latest attempts have failed. Keyward repeats them, and disables the endpoint after five days without success.'
      : disabledReason === null
        ? 'Keyward sends no events to it. Turn the endpoint on to receive events from then on.'
        : t.disabledHint[disabledReason]
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
            Failing since <When at={failingSince} />
          </Text>
        )}
        {state !== 'failing' && onTurnOn !== null && (
          <Group>
            <Button size="xs" onClick={onTurnOn}>
              Turn on
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  )
}

/** The types of the events that an endpoint receives. */
export function EventTypes({ types }: { types: readonly string[] }) {
  return types.includes('*') ? 'Every event' : <span className="mono">{types.join(', ')}</span>
}
