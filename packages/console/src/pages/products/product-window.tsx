/** The window that creates or changes a product. */

import { product, type Product } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { call } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'

const t = text.products

function update(id: string, body: object): Promise<Product> {
  return call({ method: 'PATCH', path: `/products/${id}`, body, waits: true }, product)
}

export function ProductWindow({ before, onClose }: { before: Product | null; onClose: () => void }) {
  const [name, setName] = useState(before?.name ?? '')
  const [rows, setRows] = useState(rowsOf(before?.entitlements ?? {}))
  const saving = useChange(
    () => {
      const body = { name, entitlements: entitlementsOf(rows) }
      return before ? update(before.id, body) : call({ method: 'POST', path: '/products', body, waits: true }, product)
    },
    {
      done: before ? t.saved : t.created,
      ...(before && { undo: () => update(before.id, { name: before.name, entitlements: before.entitlements }) }),
      quiet: true,
    },
  )
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened
      onClose={onClose}
      size="lg"
      isInvalid={hasProblem(rows)}
      onSubmit={() => saving.mutateAsync(undefined)}
    >
      {(errors) => (
        <>
          <TextInput
            label={t.nameOf}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
            required
            data-autofocus
          />
          <EntitlementsField
            rows={rows}
            onChange={setRows}
            errors={errors}
            description={text.entitlements.defaultsHint}
          />
        </>
      )}
    </FormWindow>
  )
}
