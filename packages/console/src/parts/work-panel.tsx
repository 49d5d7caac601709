import { Alert, Button, Card, Group, List, Progress, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

import { type BadRow, dismissWork, type Work } from '../api/work.ts'
import { ErrorMessage } from './states.tsx'

const t = {
  bad: (count: number) =>
    count === 1
      ? '1 row is not valid and is skipped:'
      : `${count.toLocaleString()} rows are not valid and are skipped:`,
  covered: (count: number) =>
    count === 1
      ? '1 row exists already and is skipped:'
      : `${count.toLocaleString()} rows exist already and are skipped, for example:`,
}
const MAX_SHOWN = 50

export function BadRows({ rows, covered = false }: { rows: readonly BadRow[]; covered?: boolean }) {
  if (rows.length === 0) return null
  return (
    <Alert color={covered ? 'gray' : 'orange'} title={covered ? t.covered(rows.length) : t.bad(rows.length)}>
      <List size="sm" className="bad-rows">
        {rows.slice(0, MAX_SHOWN).map(({ where, detail }) => (
          <List.Item key={`${where} ${detail}`}>
            <b>{where}:</b> {detail}
          </List.Item>
        ))}
      </List>
      {rows.length > MAX_SHOWN && <Text size="sm">and {(rows.length - MAX_SHOWN).toLocaleString()} more</Text>}
    </Alert>
  )
}

/** Shows the progress, the result and the failed rows of a task. Shows `actions` when the task has ended. */
export function WorkPanel({
  work,
  actions,
  dismiss = 'Import more',
}: {
  work: Work
  actions?: ReactNode
  /** The label of the button that removes the result. */
  dismiss?: string
}) {
  return (
    <Card withBorder component="section" aria-label={work.title}>
      <Stack>
        <Title order={2} size="h4">
          {work.title}
        </Title>
        <Progress
          value={(100 * work.done) / Math.max(1, work.all)}
          color={work.error ? 'red' : work.isRunning ? 'indigo' : 'teal'}
          animated={work.isRunning}
          aria-label={work.title}
        />
        <Text role="status">
          {work.isRunning ? `${work.done.toLocaleString()} of ${work.all.toLocaleString()} rows` : work.summary}
        </Text>
        {work.isRunning && (
          <Text size="sm" c="dimmed">
            You can open other screens. The work continues while this page is open in the browser.
          </Text>
        )}
        <ErrorMessage error={work.error} />
        <BadRows rows={work.bad} />
        <BadRows rows={work.covered} covered />
        {!work.isRunning && (
          <Group>
            {actions}
            <Button variant="default" onClick={() => dismissWork(work.path)}>
              {dismiss}
            </Button>
          </Group>
        )}
      </Stack>
    </Card>
  )
}
