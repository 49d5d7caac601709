import { type Product, products } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { useList } from '../../api/hooks.ts'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, TextLink, When } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlParameters } from '../../parts/url.ts'
import { text } from '../../text.ts'

const t = text.products

const COLUMNS: readonly Column<Product>[] = [
  { title: t.nameOf, cell: ({ name }) => name },
  {
    title: text.entitlements.title,
    cell: ({ entitlements }) => <EntitlementList defaults={{}} overrides={entitlements} />,
  },
  {
    title: text.nav.licenses,
    cell: ({ id }) => <TextLink href={`/licenses?productId=${id}`}>{t.licenses}</TextLink>,
  },
  { title: 'Id', cell: ({ id }) => <Copyable value={id} /> },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Products({ me }: { me: Me }) {
  const list = useList(products.listProducts, {})
  const [isCreating, creating] = useDisclosure(useUrlParameters().has('new'))
  const create = me.permissions.includes('products.write') && <Button onClick={creating.open}>{t.new}</Button>
  return (
    <Screen title={t.title} actions={create}>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/products/${id}`}
        label={t.title}
        empty={
          <>
            {t.empty}
            {create}
          </>
        }
      />
      {isCreating && <ProductWindow before={null} onClose={creating.close} />}
    </Screen>
  )
}
