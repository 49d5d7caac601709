import { type Product, products } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { useChange } from '../../api/hooks.ts'
import { call } from '../../api/operations.ts'
import { EntitlementsField, grantsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'

const t = text.products

export function ProductWindow({ before, onClose }: { before: Product | null; onClose: () => void }) {
  const [name, setName] = useState(before?.name ?? '')
  const [rows, setRows] = useState(rowsOf(before?.entitlements ?? {}))
  const saving = useChange(
    () => {
      const body = { name, entitlements: grantsOf(rows) }
      return before
        ? call(products.updateProduct, { params: { id: before.id }, body })
        : call(products.createProduct, { body })
    },
    {
      done: before ? t.saved : t.created,
      ...(before && {
        undo: () =>
          call(products.updateProduct, {
            params: { id: before.id },
            body: { name: before.name, entitlements: before.entitlements },
          }),
      }),
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
