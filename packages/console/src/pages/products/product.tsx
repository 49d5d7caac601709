/** One product: its default entitlements, its access rules, and the API keys that are bound to it. */

import { apiKeys } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Card, SimpleGrid, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, useLocation } from 'wouter'

import { type ItemOf, useCall, useList, useRead } from '../../api/hooks.ts'
import { useRemembered } from '../../api/recent.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Copyable, Fact, Part, TextLink, Waiting, When } from '../../parts/parts.tsx'
import { ProductWindow } from '../../parts/product-window.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import { RulesTable } from '../rules/rules-table.tsx'
import { Templates } from '../templates/templates.tsx'

const t = text.products
type ApiKey = ItemOf<typeof apiKeys.listApiKeys>

const KEY_COLUMNS: readonly Column<ApiKey>[] = [
  { title: text.credentials.nameOf, cell: ({ name }) => name },
  { title: text.credentials.prefix, cell: ({ prefix }) => <span className="mono">{prefix}…</span> },
  { title: text.credentials.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
]

function BoundKeys({ productId }: { productId: string }) {
  const list = useList(apiKeys.listApiKeys, { query: { productId } })
  return (
    <Part title={t.keys} action={<TextLink href="/credentials">{text.nav.credentials}</TextLink>}>
      <ListTable list={list} columns={KEY_COLUMNS} empty={<Text c="dimmed">{t.noKeys}</Text>} label={t.keys} />
    </Part>
  )
}

export default function ProductPage({ id, me }: { id: string; me: Me }) {
  const read = useRead(products.readProduct, { params: { id } })
  const [isEditing, editing] = useDisclosure(false)
  const [, navigate] = useLocation()
  const remove = useCall(products.deleteProduct, {
    done: t.deleted,
    onDone: () => navigate('/products'),
  })
  useRemembered(`/products/${id}`, text.licenses.product, read.data?.name)
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { name, entitlements, createdAt } = read.data
  const may = (permission: string) => me.permissions.includes(permission)
  return (
    <Screen
      title={name}
      actions={
        <>
          {may('licenses.read') && (
            <Button variant="default" component={Link} href={`/licenses?productId=${id}`}>
              {t.licenses}
            </Button>
          )}
          {may('products.write') && (
            <>
              <Button variant="default" onClick={editing.open}>
                {t.edit}
              </Button>
              <ConfirmButton
                label={text.delete}
                title={t.deleteTitle}
                object={<bdi>{read.data.name}</bdi>}
                consequence={t.deleteHint}
                onConfirm={() => remove.mutateAsync({ params: { id } })}
                isPending={remove.isPending}
              />
            </>
          )}
        </>
      }
    >
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} component="dl" m={0}>
          <Fact term={t.defaults}>
            <EntitlementList defaults={{}} overrides={entitlements} />
          </Fact>
          <Fact term={text.licenses.createdOn}>
            <When at={createdAt} />
          </Fact>
          <Fact term="Id">
            <Copyable value={id} />
          </Fact>
        </SimpleGrid>
      </Card>
      <Templates productId={id} canWrite={may('products.write')} />
      {may('licenses.read') && (
        <Part
          title={t.rules}
          action={
            may('licenses.write') && (
              <Button size="xs" variant="default" component={Link} href={`/rules/new?product=${id}`}>
                {t.newRule}
              </Button>
            )
          }
        >
          <RulesTable
            filters={{ scope: 'PRODUCT', scopeId: id }}
            label={t.rules}
            canWrite={may('licenses.write')}
            empty={<Text c="dimmed">{t.noRules}</Text>}
          />
        </Part>
      )}
      {may('credentials.write') && <BoundKeys productId={id} />}
      {isEditing && <ProductWindow before={read.data} onClose={editing.close} />}
    </Screen>
  )
}
