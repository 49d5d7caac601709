import { type Product, products } from '@keyward/contract/management/products'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, TextLink, When } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { useUrlParameters } from '../../parts/url.ts'

const COLUMNS: readonly Column<Product>[] = [
  { title: 'Name', cell: ({ name }) => name },
  {
    title: 'Entitlements',
    cell: ({ entitlements }) => <EntitlementList overrides={entitlements} />,
  },
  {
    title: 'Licenses',
    cell: ({ id }) => <TextLink href={`/licenses?productId=${id}`}>Show the licenses</TextLink>,
  },
  { title: 'Id', cell: ({ id }) => <Copyable value={id} /> },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Products() {
  const may = useMay()
  const list = useList(products.listProducts, {})
  const [isCreating, creating] = useDisclosure(useUrlParameters().has('new'))
  const create = may('products.write') && <Button onClick={creating.open}>New product</Button>
  return (
    <Screen title="Products" actions={create}>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/products/${id}`}
        label="Products"
        empty="No products yet. Each license belongs to a product."
        create={create}
      />
      {isCreating && <ProductWindow before={null} onClose={creating.close} />}
    </Screen>
  )
}
