import { type Customer, customers } from '@keyward/contract'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { useEdit } from '../api/edit.ts'
import { text } from '../text.ts'
import { FormWindow } from './form.tsx'

const t = text.customers

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
  const saving = useEdit(customers.updateCustomer, before ?? null, {
    done: before ? t.saved : t.created,
    create: customers.createCustomer,
    ...(onSaved && { onCreated: onSaved }),
  })
  const body = { email, name: name === '' ? null : name, externalId: externalId === '' ? null : externalId }
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened={opened}
      onClose={onClose}
      onSubmit={() => saving.mutateAsync(body)}
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
