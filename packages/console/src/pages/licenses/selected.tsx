/** Actions on the selected licenses. Before an action, the person sees the effect and the number of licenses that the action skips. */

import { type License, licenses as all } from '@keyward/contract'
import { Button, Group, Paper, Stack, Text } from '@mantine/core'
import { type QueryClient, useQueryClient } from '@tanstack/react-query'

import { call } from '../../api/client.ts'
import { type BadRow, type Report, startWork } from '../../api/work.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { text } from '../../text.ts'

const t = text.bulk
type Action = 'suspend' | 'reinstate' | 'delete'
const ACTIONS = ['suspend', 'reinstate', 'delete'] as const
const OPERATIONS = { suspend: all.suspendLicense, reinstate: all.reinstateLicense, delete: all.deleteLicense } as const
/** Maps each action to the action that reverts it. A deletion is final. */
const REVERSE: Readonly<Record<Action, Action | null>> = { suspend: 'reinstate', reinstate: 'suspend', delete: null }
/** The maximum number of simultaneous requests. */
const CONCURRENCY = 4
const PATH = '/licenses'

/** The last action and the licenses that it has changed. */
let last: { action: Action; changed: License[] } | null = null

function canBe(action: Action, { status }: License): boolean {
  if (action === 'suspend') return status !== 'suspended' && status !== 'revoked'
  return action === 'delete' || status === 'suspended'
}

async function runAll(action: Action, licenses: readonly License[], report: Report): Promise<void> {
  const waiting = [...licenses]
  const changed: License[] = []
  last = { action, changed }
  const bad: BadRow[] = []
  let done = 0
  const worker = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      try {
        await call(OPERATIONS[action], { params: { id: one.id } }, { waits: false })
        changed.push(one)
      } catch (error) {
        bad.push({ where: one.key, detail: error instanceof Error ? error.message : String(error) })
      }
      done++
      report({ done, bad: [...bad], summary: t.result[action](done - bad.length) })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
}

function start(queries: QueryClient, action: Action, licenses: readonly License[]): void {
  const work = { title: t.working[action], path: PATH, all: licenses.length }
  void startWork(work, (report) => runAll(action, licenses, report)).then(() => queries.invalidateQueries())
}

/** The button that reverts the last action on many licenses. */
export function UndoSelected() {
  const queries = useQueryClient()
  if (last === null || last.changed.length === 0) return null
  const { action, changed } = last
  const reverse = REVERSE[action]
  if (reverse === null) return null
  return <Button onClick={() => start(queries, reverse, changed)}>{text.undo}</Button>
}

export function SelectedLicenses({
  licenses,
  onDone,
  onSelectMatching,
  isSelecting,
}: {
  licenses: readonly License[]
  onDone: () => void
  /** Selects the licenses that the list does not show yet, or null if all are selected or only some of the shown ones. */
  onSelectMatching: (() => void) | null
  isSelecting: boolean
}) {
  const queries = useQueryClient()
  const run = async (action: Action, chosen: readonly License[]) => {
    start(queries, action, chosen)
    onDone()
  }
  return (
    <Paper withBorder p="xs" className="selected" role="region" aria-label={text.selected(licenses.length)}>
      <Group justify="space-between">
        <Text size="sm" fw={600}>
          {text.selected(licenses.length)}
        </Text>
        <Group gap="xs">
          {onSelectMatching && (
            <Button size="xs" variant="subtle" onClick={onSelectMatching} loading={isSelecting}>
              {text.selectMatching}
            </Button>
          )}
          <Button size="xs" variant="subtle" color="gray" onClick={onDone}>
            {text.clearSelection}
          </Button>
          {ACTIONS.map((action) => {
            const chosen = licenses.filter((one) => canBe(action, one))
            const others = licenses.length - chosen.length
            return (
              <ConfirmButton
                key={action}
                size="xs"
                label={t[action]}
                title={t.title[action](chosen.length)}
                isDangerous={action === 'delete'}
                isDisabled={chosen.length === 0}
                consequence={
                  <Stack gap="xs" component="span">
                    <span>{chosen.length === 0 ? t.none : t.hint[action]}</span>
                    {others > 0 && chosen.length > 0 && <span>{t.skipped(others)}</span>}
                  </Stack>
                }
                onConfirm={() => run(action, chosen)}
              />
            )
          })}
        </Group>
      </Group>
    </Paper>
  )
}
