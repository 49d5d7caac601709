import { type Product, products } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { call, callAndApply } from '../../api/client.ts'
import { useChange } from '../../api/hooks.ts'
import { liveMessage } from '../../api/live.ts'
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
        ? callAndApply(products.updateProduct, { params: { id: before.id }, body })
        : callAndApply(products.createProduct, { body })
    },
    {
      done: ({ applied }) => liveMessage(before ? t.saved : t.created, applied),
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
