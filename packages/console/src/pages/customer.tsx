import { customers, type License, licenses as allLicenses } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { ActionIcon, Button, Menu } from '@mantine/core'
import { IconDots, IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { useCall, useList, useRead } from '../api/hooks.ts'
import { useName } from '../api/names.ts'
import { useRemembered } from '../api/recent.ts'
import { Confirm } from '../parts/confirm.tsx'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { Screen } from '../parts/page-header.tsx'
import { CopyIcon, DotBadge, KeyText, LastDay, StatusBadge, When } from '../parts/parts.tsx'
import { Slots } from '../parts/slots.tsx'
import { ErrorState, LoadingPage } from '../parts/states.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'
import { termOf } from './licenses/summary.tsx'

const t = text.customers

function ProductName({ id }: { id: string }) {
  return <bdi className="name">{useName(id)}</bdi>
}

const COLUMNS: readonly Column<License>[] = [
  {
    title: t.license,
    cell: ({ productId, key }) => (
      <>
        <ProductName id={productId} />
        <span className="sub">
          <KeyText value={key} />
        </span>
      </>
    ),
  },
  { title: text.licenses.status, cell: ({ status }) => <StatusBadge status={status} /> },
  { title: text.licenses.machines, cell: ({ machines }) => <Slots {...machines} /> },
  {
    title: text.licenses.expires,
    cell: (one) => (one.policy.expiresAt === null ? termOf(one) : <LastDay at={one.policy.expiresAt} />),
  },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} />, isMinor: true },
]

type Opened = 'edit' | 'delete'

export default function CustomerPage({ id, me }: { id: string; me: Me }) {
  const read = useRead(customers.readCustomer, { params: { id } })
  const licenses = useList(allLicenses.listLicenses, { query: { customerId: id } })
  const [, navigate] = useLocation()
  const [opened, setOpened] = useState<Opened | null>(null)
  const remove = useCall(customers.deleteCustomer, {
    done: t.deleted,
    onDone: () => navigate('/customers'),
  })
  useRemembered(`/customers/${id}`, t.customer, read.data && (read.data.name ?? read.data.email))
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  if (!read.data) return <LoadingPage />
  const { email, name, externalId, createdAt } = read.data
  const active = licenses.items.filter(({ status }) => status === 'active').length
  const canWrite = me.permissions.includes('customers.write')
  const hasLicenses = licenses.items.length > 0
  const close = () => setOpened(null)
  const newLicense = me.permissions.includes('licenses.write') && (
    <Button
      component={Link}
      href={`/licenses/new?${new URLSearchParams({ email }).toString()}`}
      leftSection={<IconPlus size={16} />}
    >
      {text.licenses.new}
    </Button>
  )
  return (
    <Screen
      title={name ?? email}
      back={{ href: '/customers', label: text.nav.customers }}
      status={active > 0 && <DotBadge color="teal">{t.activeLicenses(active, licenses.hasMore)}</DotBadge>}
      meta={[
        <span key="email" className="with-copy">
          <bdi>{email}</bdi>
          <CopyIcon value={email} />
        </span>,
        ...(externalId === null
          ? []
          : [
              <span key="external">
                {t.externalId} <span className="mono">{externalId}</span>
              </span>,
            ]),
        <span key="since">
          {t.since} <When at={createdAt} />
        </span>,
      ]}
      actions={
        <>
          {canWrite && (
            <Button variant="default" onClick={() => setOpened('edit')}>
              {t.edit}
            </Button>
          )}
          {newLicense}
          {canWrite && (
            <Menu position="bottom-end" width={208}>
              <Menu.Target>
                <ActionIcon variant="default" size="var(--h-control)" aria-label={text.more}>
                  <IconDots size={16} />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item component={Link} href={`/customers/${id}/merge`}>
                  {t.merge}
                </Menu.Item>
                {me.permissions.includes('audit.read') && (
                  <Menu.Item component={Link} href={`/audit?resourceId=${id}`}>
                    {text.audit.history}
                  </Menu.Item>
                )}
                <Menu.Divider />
                <Menu.Item color="red" disabled={hasLicenses} onClick={() => setOpened('delete')}>
                  {t.delete}
                </Menu.Item>
                {hasLicenses && <Menu.Label>{t.notDeletable}</Menu.Label>}
              </Menu.Dropdown>
            </Menu>
          )}
        </>
      }
    >
      <section aria-label={t.licensesOf}>
        <ListTable
          list={licenses}
          columns={COLUMNS}
          href={(one) => `/licenses/${one.id}`}
          empty={
            <>
              <p>{t.noLicenses}</p>
              {newLicense}
            </>
          }
          label={t.licensesOf}
          hasTwoLines
        />
      </section>
      {opened === 'edit' && <CustomerWindow opened onClose={close} before={read.data} />}
      {opened === 'delete' && (
        <Confirm
          label={t.delete}
          title={t.deleteTitle}
          object={name === null ? email : `${name}, ${email}`}
          consequence={t.deleteHint}
          onConfirm={() => remove.mutateAsync({ params: { id } })}
          isPending={remove.isPending}
          onClose={close}
        />
      )}
    </Screen>
  )
}
