/** Actions on the selected licenses. Before an action, the person sees the effect and the number of licenses that the action skips. */

import { type License, licenses as all } from '@keyward/contract'
import { Button, Stack } from '@mantine/core'

import { call } from '../../api/client.ts'
import { type BadRow, type Report, useStart } from '../../api/work.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { SelectionBar } from '../../parts/table.tsx'
import { counted } from '../../text.ts'

const t = {
  suspend: 'Suspend',
  reinstate: 'Reinstate',
  delete: 'Delete',
  title: {
    suspend: (count: number) => `Suspend ${counted(count, 'license')}?`,
    reinstate: (count: number) => `Reinstate ${counted(count, 'license')}?`,
    delete: (count: number) => `Delete ${counted(count, 'license')} permanently?`,
  },
  hint: {
    suspend: 'Within a moment, their checks are rejected with SUSPENDED. You can reinstate them later.',
    reinstate: 'Within a moment, their checks are decided by their terms again.',
    delete:
      'Their machines, alerts and access rules are deleted too, and their checks are rejected with NOT_FOUND. A deletion cannot be undone.',
  },
  working: { suspend: 'Suspending licenses', reinstate: 'Reinstating licenses', delete: 'Deleting licenses' },
  result: {
    suspend: (count: number) => `Suspended ${counted(count, 'license')}.`,
    reinstate: (count: number) => `Reinstated ${counted(count, 'license')}.`,
    delete: (count: number) => `Deleted ${counted(count, 'license')}.`,
  },
}
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

function useAction() {
  const start = useStart()
  return (action: Action, licenses: readonly License[]) =>
    start({ title: t.working[action], path: PATH, all: licenses.length }, (report) => runAll(action, licenses, report))
}

/** The button that reverts the last action on many licenses. */
export function UndoSelected() {
  const start = useAction()
  if (last === null || last.changed.length === 0) return null
  const { action, changed } = last
  const reverse = REVERSE[action]
  if (reverse === null) return null
  return <Button onClick={() => start(reverse, changed)}>Undo</Button>
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
  const start = useAction()
  const run = async (action: Action, chosen: readonly License[]) => {
    start(action, chosen)
    onDone()
  }
  return (
    <SelectionBar count={licenses.length} onClear={onDone}>
      {onSelectMatching && (
        <Button size="xs" variant="subtle" onClick={onSelectMatching} loading={isSelecting}>
          Select all that match
        </Button>
      )}
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
                <span>{chosen.length === 0 ? 'No selected license can be changed this way.' : t.hint[action]}</span>
                {others > 0 && chosen.length > 0 && (
                  <span>{`${counted(others, 'license')} of the selection cannot be changed this way and stay as they are.`}</span>
                )}
              </Stack>
            }
            onConfirm={() => run(action, chosen)}
          />
        )
      })}
    </SelectionBar>
  )
}
