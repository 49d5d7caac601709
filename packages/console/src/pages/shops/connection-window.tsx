/** The window that connects a shop, or changes a connection. */

import { commerce, connection, type Connection, shop } from '@keyward/contract/management/commerce'
import { Checkbox, MultiSelect, PasswordInput, Select, TextInput } from '@mantine/core'

import { useEdit } from '../../api/edit.ts'
import { useFields } from '../../parts/fields.ts'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'
import { MODES, SHOPS } from './names.ts'

const { mode, states } = connection.shape
const optionsOf = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([value, label]) => ({ value, label }))

export function ConnectionWindow({
  before,
  onClose,
  onCreated,
}: {
  before: Connection | null
  onClose: () => void
  onCreated?: (created: Connection) => void
}) {
  const {
    values,
    change,
    text: field,
  } = useFields({
    name: before?.name ?? '',
    shop: before?.shop ?? 'stripe',
    mode: before?.mode ?? 'test',
    secret: '',
    states: before?.states ?? [...states.element.options],
    unknownPrices: before?.unknownPrices ?? 'wait',
  })
  const saving = useEdit(commerce.updateConnection, before, {
    done: before ? 'Saved the connection.' : 'Connected the shop.',
    create: commerce.createConnection,
    ...(onCreated && { onCreated }),
  })
  const submit = () => {
    const { name, secret, unknownPrices } = values
    const shared = { name: name.trim(), states: values.states, unknownPrices }
    const fixed = before === null ? { shop: values.shop, mode: values.mode } : {}
    return saving.mutateAsync({ ...shared, ...fixed, ...((before === null || secret !== '') && { secret }) })
  }
  return (
    <FormWindow
      title={before ? 'Change' : 'Connect a shop'}
      action={before ? 'Save' : 'Connect'}
      onClose={onClose}
      onSubmit={submit}
    >
      {(errors) => (
        <>
          {before === null && (
            <Select
              label="Shop"
              data={optionsOf(SHOPS)}
              value={values.shop}
              onChange={(value) => change({ shop: shop.parse(value) })}
              allowDeselect={false}
              data-autofocus
            />
          )}
          <TextInput
            label="Name"
            description="A name for this connection, such as “Web shop”."
            {...field('name', errors)}
            required
          />
          {before === null && (
            <Select
              label="Mode"
              description="A test connection accepts only events of test payments, and a live one only those of real payments."
              data={optionsOf(MODES)}
              value={values.mode}
              onChange={(value) => change({ mode: mode.parse(value) })}
              allowDeselect={false}
            />
          )}
          <PasswordInput
            label="Signing secret"
            description={
              before
                ? 'Enter a new secret, or leave it empty to keep the present one.'
                : 'The secret with which the shop signs its events. The settings of the webhook in the shop show it.'
            }
            {...field('secret', errors)}
            autoComplete="off"
            required={before === null}
          />
          <MultiSelect
            label="Payments that change licenses"
            data={optionsOf(text.orderStates)}
            value={values.states}
            onChange={(chosen) => change({ states: states.parse(chosen) })}
            error={errors['states']}
          />
          <Checkbox
            label="Ignore prices that no template lists"
            description="Otherwise their events wait until a template lists the price."
            checked={values.unknownPrices === 'ignore'}
            onChange={({ currentTarget: { checked } }) => change({ unknownPrices: checked ? 'ignore' : 'wait' })}
          />
        </>
      )}
    </FormWindow>
  )
}
