/** One customer with its licenses. */

import { customer, license, type License, page } from '@keyward/contract'
import { Button, Card, Group, SimpleGrid, Stack, TextInput, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { call, callWithoutResponse, queryString } from '../api/client.ts'
import { useChange, useList, useRead } from '../api/hooks.ts'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, ErrorMessage, Fact, Screen, StatusBadge, Waiting, When } from '../parts/parts.tsx'
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

/** Returns the id of the customer with the e-mail address. Throws if there is none besides the customer `id`. */
async function otherCustomer(email: string, id: string): Promise<string> {
  const { data } = await call({ method: 'GET', path: `/customers${queryString({ email, limit: 2 })}` }, page(customer))
  const other = data.find((one) => one.id !== id)
  if (!other) throw new Error(t.notFound)
  return other.id
}

function Merge({ id, count }: { id: string; count: string }) {
  const [opened, { open, close }] = useDisclosure(false)
  const [email, setEmail] = useState('')
  const [, navigate] = useLocation()
  const merge = useChange(
    async () => {
      const into = await otherCustomer(email.trim(), id)
      return call({ method: 'POST', path: `/customers/${id}/merge`, body: { into }, waits: true }, customer)
    },
    { done: t.merged, onDone: (remaining) => navigate(`/customers/${remaining.id}`), quiet: true },
  )
  return (
    <>
      <Button variant="default" onClick={open}>
        {t.merge}
      </Button>
      <FormWindow
        title={t.mergeTitle}
        action={t.merge}
        opened={opened}
        onClose={close}
        onSubmit={() => merge.mutateAsync(undefined)}
      >
        {() => (
          <>
            <p>
              {t.mergeHint} {t.licensesOf}: {count}.
            </p>
            <TextInput
              label={t.mergeInto}
              type="email"
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
              required
              data-autofocus
            />
          </>
        )}
      </FormWindow>
    </>
  )
}

export default function CustomerPage({ id }: { id: string }) {
  const read = useRead(`/customers/${id}`, customer)
  const licenses = useList('/licenses', license, { customerId: id })
  const [, navigate] = useLocation()
  const [isEditing, editing] = useDisclosure(false)
  const remove = useChange(() => callWithoutResponse({ method: 'DELETE', path: `/customers/${id}` }), {
    done: t.deleted,
    onDone: () => navigate('/customers'),
  })
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
          <Merge id={id} count={`${licenses.items.length}${licenses.hasMore ? '+' : ''}`} />
          <ConfirmButton
            label={t.delete}
            title={t.deleteTitle}
            consequence={t.deleteHint}
            onConfirm={() => remove.mutateAsync(undefined)}
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
        <Group>
          <Title order={2} size="h4">
            {t.licensesOf}
          </Title>
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
