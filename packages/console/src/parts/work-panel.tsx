import { Alert, Button, Group, List, Text } from '@mantine/core'
import type { ReactNode } from 'react'

import { type BadRow, dismissWork, type Work } from '../api/work.ts'
import { ProgressCard } from './progress-card.tsx'
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
export function WorkPanel({ work, actions }: { work: Work; actions: ReactNode }) {
  const { title, path, done, all, isRunning, summary, bad, covered, error } = work
  return (
    <ProgressCard
      title={title}
      done={done}
      all={all}
      status={isRunning ? `${done.toLocaleString()} of ${all.toLocaleString()} rows` : summary}
      state={error ? 'failed' : isRunning ? 'running' : 'ended'}
    >
      {isRunning && (
        <Text size="sm" c="dimmed">
          You can open other screens. The work continues while this page is open in the browser.
        </Text>
      )}
      <ErrorMessage error={error} />
      <BadRows rows={bad} />
      <BadRows rows={covered} covered />
      {!isRunning && (
        <Group>
          {actions}
          <Button variant="default" onClick={() => dismissWork(path)}>
            Import more
          </Button>
        </Group>
      )}
    </ProgressCard>
  )
}
