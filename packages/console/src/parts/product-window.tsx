import { type Product, products } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'
import { useState } from 'react'

import { useEdit } from '../api/edit.ts'
import { text } from '../text.ts'
import { EntitlementsField, grantsOf, hasProblem, rowsOf } from './entitlements-field.tsx'
import { FormWindow } from './form.tsx'

const t = text.products

export function ProductWindow({
  before,
  onClose,
  onCreated,
}: {
  before: Product | null
  onClose: () => void
  onCreated?: (created: Product) => void
}) {
  const [name, setName] = useState(before?.name ?? '')
  const [rows, setRows] = useState(rowsOf(before?.entitlements ?? {}))
  const saving = useEdit(products.updateProduct, before, {
    done: before ? t.saved : t.created,
    create: products.createProduct,
    ...(onCreated && { onCreated }),
  })
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened
      onClose={onClose}
      size="lg"
      isInvalid={hasProblem(rows)}
      onSubmit={() => saving.mutateAsync({ name, entitlements: grantsOf(rows) })}
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
