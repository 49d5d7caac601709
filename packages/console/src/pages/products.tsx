/** The products. */

import { product, type Product } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call, callWithoutResponse } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import {
  EntitlementList,
  type EntitlementRow,
  EntitlementsField,
  entitlementsOf,
  rowsOf,
} from '../parts/entitlements-field.tsx'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.products

type Edited = { id: string | null; name: string; rows: EntitlementRow[] }

export default function Products({ me }: { me: Me }) {
  const list = useList('/products', product)
  const isNew = useUrlParameters().has('new')
  const [edited, setEdited] = useState<Edited | null>(isNew ? { id: null, name: '', rows: [] } : null)
  const saving = useChange(
    ({ id, name, rows }: Edited) => {
      const body = { name, entitlements: entitlementsOf(rows) }
      return id === null
        ? call({ method: 'POST', path: '/products', body, waits: true }, product)
        : call({ method: 'PATCH', path: `/products/${id}`, body, waits: true }, product)
    },
    { done: edited?.id === null ? t.created : t.saved, quiet: true },
  )
  const remove = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `/products/${id}` }), {
    done: t.deleted,
  })
  const open = () => setEdited({ id: null, name: '', rows: [] })
  const canWrite = me.permissions.includes('products.write')
  const columns: Column<Product>[] = [
    { title: t.nameOf, cell: ({ name }) => name },
    {
      title: text.entitlements.title,
      cell: ({ entitlements }) => <EntitlementList defaults={{}} overrides={entitlements} />,
    },
    { title: 'Id', cell: ({ id }) => <Copyable value={id} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
  ]
  if (canWrite)
    columns.push({
      title: text.actions,
      cell: ({ id, name, entitlements }) => (
        <Group gap="xs" wrap="nowrap">
          <Button size="xs" variant="default" onClick={() => setEdited({ id, name, rows: rowsOf(entitlements) })}>
            {t.edit}
          </Button>
          <ConfirmButton
            size="xs"
            label={text.delete}
            title={t.deleteTitle}
            consequence={t.deleteHint}
            onConfirm={() => remove.mutateAsync(id)}
          />
        </Group>
      ),
    })
  return (
    <Screen title={t.title} actions={canWrite && <Button onClick={open}>{t.new}</Button>}>
      <ListTable
        list={list}
        columns={columns}
        href={({ id }) => `/licenses?productId=${id}`}
        label={t.title}
        empty={
          <>
            {t.empty}
            {canWrite && <Button onClick={open}>{t.new}</Button>}
          </>
        }
      />
      <FormWindow
        title={edited?.id === null ? t.new : t.edit}
        action={edited?.id === null ? t.new : text.save}
        opened={edited !== null}
        onClose={() => setEdited(null)}
        size="lg"
        onSubmit={() => (edited ? saving.mutateAsync(edited) : Promise.resolve())}
      >
        {(errors) => (
          <>
            <TextInput
              label={t.nameOf}
              value={edited?.name ?? ''}
              onChange={(event) => setEdited(edited && { ...edited, name: event.currentTarget.value })}
              error={errors['name']}
              required
              data-autofocus
            />
            <EntitlementsField
              rows={edited?.rows ?? []}
              onChange={(rows) => setEdited(edited && { ...edited, rows })}
              errors={errors}
              description={text.entitlements.defaultsHint}
            />
          </>
        )}
      </FormWindow>
    </Screen>
  )
}
