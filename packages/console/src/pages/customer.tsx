import { customers, type License, licenses as allLicenses } from '@keyward/contract'
import { Button, Card, Group, SimpleGrid, Stack, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, useLocation } from 'wouter'

import { useCall, useList, useRead } from '../api/hooks.ts'
import { useRemembered } from '../api/recent.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, Fact, StatusBadge, Waiting, When } from '../parts/parts.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.customers

const COLUMNS: readonly Column<License>[] = [
  { title: text.licenses.key, cell: ({ key }) => <span className="mono">{key}</span> },
  { title: text.licenses.status, cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: text.licenses.machines,
    cell: ({ machines }) => `${machines.used} / ${machines.max ?? '∞'}`,
    isNumber: true,
  },
  { title: text.licenses.expires, cell: ({ policy }) => <When at={policy.expiresAt} /> },
]

export default function CustomerPage({ id }: { id: string }) {
  const read = useRead(customers.readCustomer, { params: { id } })
  const licenses = useList(allLicenses.listLicenses, { query: { customerId: id } })
  const [, navigate] = useLocation()
  const [isEditing, editing] = useDisclosure(false)
  const remove = useCall(customers.deleteCustomer, {
    done: t.deleted,
    onDone: () => navigate('/customers'),
  })
  useRemembered(`/customers/${id}`, t.customer, read.data && (read.data.name ?? read.data.email))
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { email, name, externalId, createdAt } = read.data
  return (
    <Screen
      title={name ?? email}
      actions={
        <>
          <Button variant="default" onClick={editing.open}>
            {t.edit}
          </Button>
          <Button variant="default" component={Link} href={`/customers/${id}/merge`}>
            {t.merge}
          </Button>
          <ConfirmButton
            label={t.delete}
            title={t.deleteTitle}
            consequence={t.deleteHint}
            onConfirm={() => remove.mutateAsync({ params: { id } })}
          />
        </>
      }
    >
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} component="dl" m={0}>
          <Fact term={t.email}>
            <Copyable value={email} />
          </Fact>
          <Fact term={t.nameOf}>{name ?? text.none}</Fact>
          <Fact term={t.externalId}>{externalId ?? text.none}</Fact>
          <Fact term={text.licenses.createdOn}>
            <When at={createdAt} />
          </Fact>
        </SimpleGrid>
      </Card>
      <Stack gap="sm" component="section" aria-label={t.licensesOf}>
        <Group justify="space-between">
          <Title order={2} size="h4">
            {t.licensesOf}
          </Title>
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={`/licenses/new?${new URLSearchParams({ email }).toString()}`}
          >
            {text.licenses.new}
          </Button>
        </Group>
        <ListTable
          list={licenses}
          columns={COLUMNS}
          href={(one) => `/licenses/${one.id}`}
          empty={text.licenses.emptyFiltered}
          label={t.licensesOf}
        />
      </Stack>
      {isEditing && <CustomerWindow opened onClose={editing.close} before={read.data} />}
    </Screen>
  )
}
