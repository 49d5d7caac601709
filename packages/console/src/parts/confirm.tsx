/** Confirmations of changes. Each names the object that changes, and an irreversible change needs the last characters of its key. */

import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { type FormEvent, type ReactNode, useState } from 'react'

import { IconButton } from './parts.tsx'
import { Window } from './window.tsx'

interface ConfirmProps {
  /** The verb on the button that acts. */
  label: string
  title: string
  /** The object that changes, such as a license key with its customer. */
  object?: ReactNode
  consequence: ReactNode
  /** Fields of the change. */
  fields?: ReactNode
  onConfirm: () => Promise<unknown>
  isDangerous?: boolean
  /** The characters that the person must type before an irreversible change. */
  typed?: string
  /** Whether the change is not possible, or its consequence not known yet. */
  isDisabled?: boolean
}

export function Confirm({
  label,
  title,
  object,
  consequence,
  fields,
  onConfirm,
  isDangerous = true,
  typed = '',
  isDisabled = false,
  onClose,
}: ConfirmProps & { onClose: () => void }) {
  const [value, setValue] = useState('')
  const [isPending, setIsPending] = useState(false)
  const isTyped = value.trim().toUpperCase() === typed.toUpperCase()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isTyped || isDisabled) return
    setIsPending(true)
    void onConfirm().then(onClose, () => setIsPending(false))
  }
  return (
    <Window onClose={onClose} title={title} centered>
      <form onSubmit={submit}>
        <Stack>
          {object !== undefined && <div className="confirm-object">{object}</div>}
          <Text size="sm" component="div">
            {consequence}
          </Text>
          {fields}
          {typed !== '' && (
            <TextInput
              label={`Type ${typed} to confirm`}
              value={value}
              onChange={(event) => setValue(event.currentTarget.value)}
              autoComplete="off"
              spellCheck={false}
              data-autofocus
            />
          )}
          <Group justify="flex-end">
            <Button
              variant="default"
              onClick={onClose}
              {...(typed === '' && fields === undefined && { 'data-autofocus': true })}
            >
              Cancel
            </Button>
            <Button
              type="submit"
              color={isDangerous ? 'red' : 'indigo'}
              loading={isPending}
              disabled={!isTyped || isDisabled}
            >
              {label}
            </Button>
          </Group>
        </Stack>
      </form>
    </Window>
  )
}

/** A button that shows the consequence and requires a confirmation before it acts. */
export function ConfirmButton({
  size,
  icon,
  ...confirm
}: ConfirmProps & {
  size?: string
  /** An icon that replaces the label. The label is then the tooltip. */
  icon?: ReactNode
}) {
  const [opened, { open, close }] = useDisclosure(false)
  return (
    <>
      {icon === undefined ? (
        <Button variant="default" onClick={open} {...(size !== undefined && { size })}>
          {confirm.label}
        </Button>
      ) : (
        <IconButton label={confirm.label} icon={icon} onClick={open} />
      )}
      {opened && <Confirm {...confirm} onClose={close} />}
    </>
  )
}
