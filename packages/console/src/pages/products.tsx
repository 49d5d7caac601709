/** The products. */

import { product, type Product } from '@keyward/contract/management/products'
import { Button, Group, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call, callWithoutResponse } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.products

type Edited = { id: string | null; name: string }

export default function Products() {
  const list = useList('/products', product)
  const [edited, setEdited] = useState<Edited | null>(null)
  const saving = useChange(
    ({ id, name }: Edited) =>
      id === null
        ? call({ method: 'POST', path: '/products', body: { name } }, product)
        : call({ method: 'PATCH', path: `/products/${id}`, body: { name } }, product),
    { done: edited?.id === null ? t.created : t.saved, quiet: true },
  )
  const remove = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `/products/${id}` }), {
    done: t.deleted,
  })
  const open = () => setEdited({ id: null, name: '' })
  const columns: readonly Column<Product>[] = [
    { title: t.nameOf, cell: ({ name }) => name },
    { title: 'Id', cell: ({ id }) => <Copyable value={id} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name }) => (
        <Group gap="xs" wrap="nowrap">
          <Button size="xs" variant="default" onClick={() => setEdited({ id, name })}>
            {t.rename}
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
    },
  ]
  return (
    <Screen title={t.title} actions={<Button onClick={open}>{t.new}</Button>}>
      <ListTable
        list={list}
        columns={columns}
        href={({ id }) => `/licenses?productId=${id}`}
        label={t.title}
        empty={
          <>
            {t.empty}
            <Button onClick={open}>{t.new}</Button>
          </>
        }
      />
      <FormWindow
        title={edited?.id === null ? t.new : t.rename}
        action={edited?.id === null ? t.new : text.save}
        opened={edited !== null}
        onClose={() => setEdited(null)}
        onSubmit={() => (edited ? saving.mutateAsync(edited) : Promise.resolve())}
      >
        {(errors) => (
          <TextInput
            label={t.nameOf}
            value={edited?.name ?? ''}
            onChange={(event) => setEdited(edited && { ...edited, name: event.currentTarget.value })}
            error={errors['name']}
            required
            data-autofocus
          />
        )}
      </FormWindow>
    </Screen>
  )
}
