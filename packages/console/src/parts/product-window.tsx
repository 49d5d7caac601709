import { type Product, products } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'

import { useEdit } from '../api/edit.ts'
import { EntitlementsField, grantsOf, hasProblem, rowsOf } from './entitlements-field.tsx'
import { useFields } from './fields.ts'
import { FormWindow } from './form.tsx'

export function ProductWindow({
  before,
  onClose,
  onCreated,
}: {
  before: Product | null
  onClose: () => void
  onCreated?: (created: Product) => void
}) {
  const {
    values,
    change,
    text: field,
  } = useFields({
    name: before?.name ?? '',
    rows: rowsOf(before?.entitlements ?? {}),
  })
  const { name, rows } = values
  const saving = useEdit(products.updateProduct, before, {
    done: before ? 'Saved the product.' : 'Created the product.',
    create: products.createProduct,
    ...(onCreated && { onCreated }),
  })
  return (
    <FormWindow
      title={before ? 'Change' : 'New product'}
      action={before ? 'Save' : 'New product'}
      onClose={onClose}
      size="lg"
      isInvalid={hasProblem(rows)}
      onSubmit={() => saving.mutateAsync({ name, entitlements: grantsOf(rows) })}
    >
      {(errors) => (
        <>
          <TextInput label="Name" {...field('name', errors)} required data-autofocus />
          <EntitlementsField
            rows={rows}
            onChange={(next) => change({ rows: next })}
            errors={errors}
            description="The defaults of the product. Each license can override them."
          />
        </>
      )}
    </FormWindow>
  )
}
