import { Button, Group, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'

import { text } from './text.ts'

const DONE_MS = 4_000
/** The time for which a message with an undo button is shown. The message also stays while the pointer is over it. */
const UNDO_MS = 12_000

let count = 0

/** Shows that a change was made, with a button that calls `undo` if given. */
export function showDone(message: string, undo?: () => Promise<unknown>): void {
  if (undo === undefined) {
    notifications.show({ message, color: 'teal', autoClose: DONE_MS })
    return
  }
  const id = `undo ${count++}`
  const revert = async () => {
    notifications.hide(id)
    try {
      await undo()
    } catch (error) {
      showError(error instanceof Error ? error : new Error(String(error)))
    }
  }
  notifications.show({
    id,
    color: 'teal',
    autoClose: UNDO_MS,
    closeButtonProps: { 'aria-label': text.close },
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm">{message}</Text>
        <Button size="compact-sm" variant="light" onClick={() => void revert()}>
          {text.undo}
        </Button>
      </Group>
    ),
  })
}

export function showError(error: Error): void {
  notifications.show({ title: text.failed, message: error.message, color: 'red', autoClose: 10_000 })
}
