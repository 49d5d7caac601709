/** A form in a window. Validation errors appear at their fields, and all other errors above the buttons. */

import { Button, Group, Stack } from '@mantine/core'
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react'

import { ApiError } from '../api/client.ts'
import { ConflictError } from '../api/edit.ts'
import { type FieldErrors, InputError } from '../api/input.ts'
import { Conflict } from './conflict.tsx'
import { ErrorMessage } from './states.tsx'
import { Window } from './window.tsx'

/** Returns the validation errors by field. The pointer of a field begins with `#/`, and that of a query parameter with `?`. */
export function fieldErrors(error: Error | null): FieldErrors {
  if (error instanceof InputError) return error.fields
  if (!(error instanceof ApiError)) return {}
  return Object.fromEntries(
    (error.problem.errors ?? []).map(({ pointer, detail }) => [
      decodeURIComponent(pointer.replace(/^(?:#\/|\?)/, '')),
      detail,
    ]),
  )
}

/** Moves the focus to the first invalid field of a form after an error. Returns the reference for the form. */
export function useFocusOnError(error: Error | null) {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    const field = error && form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    field?.focus()
  }, [error])
  return form
}

export function FormWindow({
  title,
  action,
  onClose,
  onSubmit,
  children,
  size = 'md',
  isInvalid = false,
}: {
  title: string
  /** The label of the button that submits. */
  action: string
  onClose: () => void
  /** Submits the form. Rejects with the error to show. */
  onSubmit: () => Promise<unknown>
  /** Renders the fields with their errors. */
  children: (errors: FieldErrors) => ReactNode
  size?: string
  /** Whether the form contains an error that the API cannot detect. */
  isInvalid?: boolean
}) {
  const [error, setError] = useState<Error | null>(null)
  const [isPending, setIsPending] = useState(false)
  const form = useFocusOnError(error)
  const run = async () => {
    setIsPending(true)
    try {
      await onSubmit()
      setError(null)
      onClose()
    } catch (failure) {
      setError(failure instanceof Error ? failure : new Error(String(failure)))
    } finally {
      setIsPending(false)
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void run()
  }
  const close = () => {
    setError(null)
    onClose()
  }
  const errors = fieldErrors(error)
  const conflict = error instanceof ConflictError ? error : null
  return (
    <Window onClose={close} title={title} size={size} centered>
      <form onSubmit={submit} noValidate ref={form}>
        <Stack>
          {children(errors)}
          {conflict && <Conflict conflict={conflict} />}
          {error && !conflict && Object.keys(errors).length === 0 && <ErrorMessage error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              {conflict ? 'Keep theirs' : 'Cancel'}
            </Button>
            <Button type="submit" loading={isPending} disabled={isInvalid}>
              {conflict ? 'Save mine' : action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Window>
  )
}
