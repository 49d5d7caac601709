/** One product: its default entitlements, its access rules, and the API keys that are bound to it. */

import { apiKeys } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, useLocation } from 'wouter'

import { type ItemOf, useCall, useList, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useRemembered } from '../../api/recent.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Facts, Part, TextLink, Waiting, When } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { RulesOf } from '../rules/rules-of.tsx'
import { Templates } from '../templates/templates.tsx'

type ApiKey = ItemOf<typeof apiKeys.listApiKeys>

const KEY_COLUMNS: readonly Column<ApiKey>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Begins with', cell: ({ prefix }) => <span className="mono">{prefix}…</span> },
  { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
]

function BoundKeys({ productId }: { productId: string }) {
  const list = useList(apiKeys.listApiKeys, { query: { productId } })
  return (
    <Part title="API keys of this product" action={<TextLink href="/credentials">API keys</TextLink>}>
      <ListTable
        list={list}
        columns={KEY_COLUMNS}
        empty="No API key is bound to this product. Keys for all products can check its licenses too."
        label="API keys of this product"
      />
    </Part>
  )
}

export default function ProductPage({ id }: { id: string }) {
  const may = useMay()
  const read = useRead(products.readProduct, { params: { id } })
  const [isEditing, editing] = useDisclosure(false)
  const [, navigate] = useLocation()
  const remove = useCall(products.deleteProduct, {
    done: 'Deleted the product.',
    onDone: () => navigate('/products'),
  })
  useRemembered(`/products/${id}`, 'Product', read.data?.name)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { name, entitlements, createdAt } = read.data
  return (
    <Screen
      title={name}
      actions={
        <>
          {may('licenses.read') && (
            <Button variant="default" component={Link} href={`/licenses?productId=${id}`}>
              Show the licenses
            </Button>
          )}
          {may('products.write') && (
            <>
              <Button variant="default" onClick={editing.open}>
                Change
              </Button>
              <ConfirmButton
                label="Delete"
                title="Delete this product?"
                object={<bdi>{read.data.name}</bdi>}
                consequence="The access rules of the product are deleted too. A product with licenses cannot be deleted."
                onConfirm={() => remove.mutateAsync({ params: { id } })}
              />
            </>
          )}
        </>
      }
    >
      <Facts
        facts={{
          'Default entitlements': <EntitlementList overrides={entitlements} />,
          Created: <When at={createdAt} />,
          Id: <Copyable value={id} />,
        }}
      />
      <Templates productId={id} />
      {may('licenses.read') && <RulesOf scope="PRODUCT" id={id} />}
      {may('credentials.write') && <BoundKeys productId={id} />}
      {isEditing && <ProductWindow before={read.data} onClose={editing.close} />}
    </Screen>
  )
}
