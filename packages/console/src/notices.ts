/** Short messages at the edge of the screen. */

import { notifications } from '@mantine/notifications'

import { text } from './text.ts'

export function showDone(message: string): void {
  notifications.show({ message, color: 'teal' })
}

export function showError(error: Error): void {
  notifications.show({ title: text.failed, message: error.message, color: 'red', autoClose: 10_000 })
}
