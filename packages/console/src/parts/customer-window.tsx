/** The window that creates or changes a customer. */

import { customer, type Customer } from '@keyward/contract'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { call } from '../api/client.ts'
import { useChange } from '../api/hooks.ts'
import { text } from '../text.ts'
import { FormWindow } from './form.tsx'

const t = text.customers

const update = (id: string, body: object) => call({ method: 'PATCH', path: `/customers/${id}`, body }, customer)

export function CustomerWindow({
  opened,
  onClose,
  onSaved,
  before,
}: {
  opened: boolean
  onClose: () => void
  onSaved?: (saved: Customer) => void
  /** The customer to change. If absent, the window creates a customer. */
  before?: Customer
}) {
  const [email, setEmail] = useState(before?.email ?? '')
  const [name, setName] = useState(before?.name ?? '')
  const [externalId, setExternalId] = useState(before?.externalId ?? '')
  const saving = useChange(
    () => {
      const body = { email, name: name === '' ? null : name, externalId: externalId === '' ? null : externalId }
      return before ? update(before.id, body) : call({ method: 'POST', path: '/customers', body }, customer)
    },
    {
      done: before ? t.saved : t.created,
      ...(before && {
        undo: () => update(before.id, { email: before.email, name: before.name, externalId: before.externalId }),
      }),
      quiet: true,
      ...(onSaved && { onDone: onSaved }),
    },
  )
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened={opened}
      onClose={onClose}
      onSubmit={() => saving.mutateAsync(undefined)}
    >
      {(errors) => (
        <>
          <TextInput
            label={t.email}
            type="email"
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
            error={errors['email']}
            required
            data-autofocus
          />
          <TextInput
            label={t.nameOf}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
          />
          <TextInput
            label={t.externalId}
            description={t.externalIdHint}
            value={externalId}
            onChange={(event) => setExternalId(event.currentTarget.value)}
            error={errors['externalId']}
          />
        </>
      )}
    </FormWindow>
  )
}
