/** The window with one delivery: its attempts with the responses of the endpoint, and the request that Keyward sent. */

import { events } from '@keyward/contract/management/events'
import type { Delivery } from '@keyward/contract/management/webhooks'
import { lines } from '@keyward/contract/text'
import { Alert, Button, Code, Group, Loader, Stack, Text, Title } from '@mantine/core'

import { ApiError } from '../../api/client.ts'
import { useRead } from '../../api/hooks.ts'
import { DotBadge, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { Window } from '../../parts/window.tsx'
import { text } from '../../text.ts'
import { type Attempt, explain } from './outcome.ts'

const t = {
  attempt: (number: number) => `Attempt ${number}`,
}
const COLORS: Record<Delivery['status'], string> = { SUCCEEDED: 'teal', PENDING: 'blue', FAILED: 'red' }

/** The status of a delivery. A pending delivery has a different label and color after a failed attempt. */
export function DeliveryBadge({ delivery: { status, attempts } }: { delivery: Delivery }) {
  const isRetrying = status === 'PENDING' && attempts.length > 0
  return (
    <DotBadge color={isRetrying ? 'orange' : COLORS[status]}>
      {isRetrying ? 'Trying again' : text.deliveries[status]}
    </DotBadge>
  )
}

function AttemptPart({ attempt, number }: { attempt: Attempt; number: number }) {
  const { at, durationMs, error, response, status } = attempt
  return (
    <Stack gap={6} component="section" aria-label={t.attempt(number)}>
      <Group justify="space-between" gap="xs">
        <Title order={3} size="h6">
          {t.attempt(number)}
        </Title>
        <Text size="xs" c="dimmed">
          <When at={at} />, {text.took(durationMs)}
        </Text>
      </Group>
      <Text size="sm" {...(error !== null && { fw: 600 })}>
        {explain(attempt)}
      </Text>
      {status === null && error !== null && (
        <Code block className="snippet">
          {lines(error)}
        </Code>
      )}
      {response !== null && (
        <>
          <Text size="xs" c="dimmed">
            {response === '' ? 'The response has no body.' : 'Response of the endpoint'}
          </Text>
          {response !== '' && (
            <Code block className="snippet response" tabIndex={0}>
              {lines(response)}
            </Code>
          )}
        </>
      )}
    </Stack>
  )
}

function SentRequest({ eventId, url }: { eventId: string; url: string }) {
  const read = useRead(events.readEvent, { params: { id: eventId } })
  if (read.error instanceof ApiError && read.error.problem.status === 404)
    return (
      <Text size="sm" c="dimmed">
        The event is older than 30 days and has been deleted.
      </Text>
    )
  return (
    <details>
      <summary>Request that Keyward sent</summary>
      <Stack gap="xs" mt="xs">
        <ErrorMessage error={read.error} />
        {read.data && (
          <Code block className="snippet response" tabIndex={0}>
            {`POST ${url}\ncontent-type: application/json\nwebhook-id: ${eventId}\n\n${lines(JSON.stringify(read.data, null, 2))}`}
          </Code>
        )}
        <Text size="xs" c="dimmed">
          Each attempt also has the headers webhook-timestamp and webhook-signature.
        </Text>
      </Stack>
    </details>
  )
}

export function DeliveryWindow({
  delivery,
  url,
  onClose,
  onAgain,
  isSending,
}: {
  delivery: Delivery
  url: string
  onClose: () => void
  /** A function that sends the event again, or null if the person lacks the permission or the endpoint is turned off. */
  onAgain: (() => void) | null
  isSending: boolean
}) {
  const { eventType, eventId, attempts, nextAttemptAt, status } = delivery
  return (
    <Window
      onClose={onClose}
      title={
        <Group gap="sm">
          <span className="mono">{eventType}</span>
          <DeliveryBadge delivery={delivery} />
        </Group>
      }
      size="xl"
      aria-label="Delivery"
    >
      <Stack>
        {attempts.length === 0 && (
          <Alert color="blue" icon={<Loader size={16} />} role="status">
            {text.notSent}
          </Alert>
        )}
        {attempts
          .map((attempt, index) => <AttemptPart key={attempt.at} attempt={attempt} number={index + 1} />)
          .toReversed()}
        {status === 'PENDING' && attempts.length > 0 && (
          <Text size="sm">
            Next attempt: <When at={nextAttemptAt} />
          </Text>
        )}
        <SentRequest eventId={eventId} url={url} />
        {onAgain && (
          <Group justify="flex-end">
            <Button onClick={onAgain} loading={isSending}>
              Send again
            </Button>
          </Group>
        )}
      </Stack>
    </Window>
  )
}
