import { Card, Progress, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

/** Shows the progress of work on many rows, whether a tab or the service performs it. `children` follow the status. */
export function ProgressCard({
  title,
  done,
  all,
  status,
  state = 'running',
  children,
}: {
  title: string
  done: number
  all: number
  /** The progress or the result in words. */
  status: string
  state?: 'running' | 'ended' | 'failed'
  children?: ReactNode
}) {
  return (
    <Card withBorder component="section" aria-label={title}>
      <Stack>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Progress
          value={(100 * done) / Math.max(1, all)}
          color={{ running: 'indigo', ended: 'teal', failed: 'red' }[state]}
          animated={state === 'running'}
          aria-label={title}
        />
        <Text role="status">{status}</Text>
        {children}
      </Stack>
    </Card>
  )
}
