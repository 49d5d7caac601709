import { Button, Group, type ModalProps, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'

import { Copyable } from './parts.tsx'
import { Window } from './window.tsx'

/** Shows a secret that the service returns once, with a button that closes the window if `done` is given. */
export function SecretWindow({
  secret,
  hint,
  done,
  ...window
}: Pick<ModalProps, 'title' | 'onClose' | 'closeOnEscape' | 'closeOnClickOutside' | 'withCloseButton'> & {
  secret: string
  hint?: ReactNode
  done?: string
}) {
  return (
    <Window size="lg" {...window}>
      <Stack>
        {hint && <Text size="sm">{hint}</Text>}
        <Copyable value={secret} />
        {done !== undefined && (
          <Group justify="flex-end">
            <Button onClick={window.onClose}>{done}</Button>
          </Group>
        )}
      </Stack>
    </Window>
  )
}
