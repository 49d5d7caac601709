/** The message at the lower edge of the screen that reports the last change, with its undo. */

import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { IconAlertCircle, IconCircleCheck } from '@tabler/icons-react'

const DONE_MS = 4_000
/** The time for which a message with an undo button is shown. The message also stays while the pointer is over it. */
const UNDO_MS = 12_000
const ERROR_MS = 10_000

let count = 0

/** A message replaces the earlier one, so that its undo button always belongs to the last change. */
function show(message: Parameters<typeof notifications.show>[0]): void {
  notifications.clean()
  notifications.show({ closeButtonProps: { 'aria-label': 'Close' }, ...message })
}

/** Shows that a change was made, with a button that calls `undo` if given. */
export function showDone(message: string, undo?: () => Promise<unknown>): void {
  const icon = <IconCircleCheck size={16} className="notice-done" aria-hidden="true" />
  if (undo === undefined) {
    show({ message, icon, autoClose: DONE_MS })
    return
  }
  const id = `undo ${count++}`
  const revert = async () => {
    notifications.update({ id, message: 'Undoing…', loading: true, autoClose: false })
    try {
      await undo()
      notifications.hide(id)
    } catch (error) {
      showError(error instanceof Error ? error : new Error(String(error)))
    }
  }
  show({
    id,
    icon,
    autoClose: UNDO_MS,
    message: (
      <span className="notice">
        <span>{message}</span>
        <Button size="xs" className="notice-undo" onClick={() => void revert()}>
          Undo
        </Button>
      </span>
    ),
  })
}

export function showError(error: Error): void {
  const icon = <IconAlertCircle size={16} className="notice-failed" aria-hidden="true" />
  show({ title: 'The action failed', message: error.message, icon, autoClose: ERROR_MS })
}
