import { Alert, Button, Card, Group, List, Progress, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'

import { type BadRow, dismissWork, type Work } from '../api/work.ts'
import { text } from '../text.ts'
import { ErrorMessage } from './states.tsx'

const t = text.ruleImport
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
      {rows.length > MAX_SHOWN && <Text size="sm">{t.moreBad(rows.length - MAX_SHOWN)}</Text>}
    </Alert>
  )
}

/** Shows the progress, the result and the failed rows of a task. Shows `actions` when the task has ended. */
export function WorkPanel({
  work,
  actions,
  dismiss = t.again,
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
        <Text role="status">{work.isRunning ? t.progress(work.done, work.all) : work.summary}</Text>
        {work.isRunning && (
          <Text size="sm" c="dimmed">
            {t.leave}
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
