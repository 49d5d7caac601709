import { type Customer, customers } from '@keyward/contract'
import { TextInput } from '@mantine/core'

import { useEdit } from '../api/edit.ts'
import { orNull, useFields } from './fields.ts'
import { FormWindow } from './form.tsx'

/** Creates a customer, or changes one. */
export function CustomerWindow({
  before,
  onClose,
  onCreated,
}: {
  before: Customer | null
  onClose: () => void
  onCreated?: (created: Customer) => void
}) {
  const { values, text: field } = useFields({
    email: before?.email ?? '',
    name: before?.name ?? '',
    externalId: before?.externalId ?? '',
  })
  const saving = useEdit(customers.updateCustomer, before, {
    done: before ? 'Saved the customer.' : 'Created the customer.',
    create: customers.createCustomer,
    ...(onCreated && { onCreated }),
  })
  const { email, name, externalId } = values
  return (
    <FormWindow
      title={before ? 'Edit' : 'New customer'}
      action={before ? 'Save' : 'New customer'}
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ email, name: orNull(name), externalId: orNull(externalId) })}
    >
      {(errors) => (
        <>
          <TextInput label="E-mail" type="email" {...field('email', errors)} required data-autofocus />
          <TextInput label="Name" {...field('name', errors)} />
          <TextInput
            label="External id"
            description="The id of the customer in your own system, if any."
            {...field('externalId', errors)}
          />
        </>
      )}
    </FormWindow>
  )
}
