import { customers, type License, licenses as allLicenses } from '@keyward/contract'
import { Button, Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'

import { useCall, useList, useRead } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { useRemembered } from '../api/recent.ts'
import { Confirm } from '../parts/confirm.tsx'
import { CustomerWindow } from '../parts/customer-window.tsx'
import { Name } from '../parts/name.tsx'
import { Screen } from '../parts/page-header.tsx'
import { CopyIcon, DotBadge, KeyText, LastDay, MoreMenu, StatusBadge, When } from '../parts/parts.tsx'
import { Slots } from '../parts/slots.tsx'
import { ErrorState, LoadingPage } from '../parts/states.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { countedSoFar } from '../text.ts'
import { termOf } from './licenses/summary.tsx'
import { PortalItems, PortalLinkWindow } from './portal-link.tsx'

const COLUMNS: readonly Column<License>[] = [
  {
    title: 'License',
    cell: ({ productId, key }) => (
      <>
        <bdi className="name">
          <Name id={productId} />
        </bdi>
        <span className="sub">
          <KeyText value={key} />
        </span>
      </>
    ),
  },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Machines', cell: ({ machines }) => <Slots {...machines} /> },
  {
    title: 'Expires',
    cell: (one) => (one.policy.expiresAt === null ? termOf(one) : <LastDay at={one.policy.expiresAt} />),
  },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} />, isMinor: true },
]

type Opened = 'edit' | 'delete'

export default function CustomerPage({ id }: { id: string }) {
  const may = useMay()
  const read = useRead(customers.readCustomer, { params: { id } })
  const licenses = useList(allLicenses.listLicenses, { query: { customerId: id } })
  const [, navigate] = useLocation()
  const [opened, setOpened] = useState<Opened | null>(null)
  const [link, setLink] = useState<string | null>(null)
  const remove = useCall(customers.deleteCustomer, {
    done: 'Deleted the customer.',
    onDone: () => navigate('/customers'),
  })
  useRemembered(`/customers/${id}`, 'Customer', read.data && (read.data.name ?? read.data.email))
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  if (!read.data) return <LoadingPage />
  const { email, name, externalId, createdAt } = read.data
  const active = licenses.items.filter(({ status }) => status === 'active').length
  const canWrite = may('customers.write')
  const mayLink = may('licenses.write') && may('licenses.read')
  const hasLicenses = licenses.items.length > 0
  const close = () => setOpened(null)
  const newLicense = may('licenses.write') && (
    <Button
      component={Link}
      href={`/licenses/new?${new URLSearchParams({ email }).toString()}`}
      leftSection={<IconPlus size={16} />}
    >
      New license
    </Button>
  )
  return (
    <Screen
      title={name ?? email}
      back={{ href: '/customers', label: 'Customers' }}
      status={
        active > 0 && <DotBadge color="teal">{countedSoFar(active, licenses.hasMore, 'active license')}</DotBadge>
      }
      meta={[
        <span key="email" className="with-copy">
          <bdi>{email}</bdi>
          <CopyIcon value={email} />
        </span>,
        ...(externalId === null
          ? []
          : [
              <span key="external">
                External id <span className="mono">{externalId}</span>
              </span>,
            ]),
        <span key="since">
          Customer since <When at={createdAt} />
        </span>,
      ]}
      actions={
        <>
          {canWrite && (
            <Button variant="default" onClick={() => setOpened('edit')}>
              Edit
            </Button>
          )}
          {newLicense}
          {(canWrite || mayLink) && (
            <MoreMenu>
              {mayLink && <PortalItems customerId={id} onLink={setLink} />}
              {canWrite && (
                <Menu.Item component={Link} href={`/customers/${id}/merge`}>
                  Merge into another
                </Menu.Item>
              )}
              {may('audit.read') && (
                <Menu.Item component={Link} href={`/audit?resourceId=${id}`}>
                  History
                </Menu.Item>
              )}
              {canWrite && (
                <>
                  <Menu.Divider />
                  <Menu.Item color="red" disabled={hasLicenses} onClick={() => setOpened('delete')}>
                    Delete
                  </Menu.Item>
                  {hasLicenses && <Menu.Label>Merge or delete its licenses first.</Menu.Label>}
                </>
              )}
            </MoreMenu>
          )}
        </>
      }
    >
      <section aria-label="Licenses">
        <ListTable
          list={licenses}
          columns={COLUMNS}
          href={(one) => `/licenses/${one.id}`}
          empty="This customer has no license yet."
          create={newLicense}
          label="Licenses"
          hasTwoLines
        />
      </section>
      {link !== null && <PortalLinkWindow url={link} onClose={() => setLink(null)} />}
      {opened === 'edit' && <CustomerWindow before={read.data} onClose={close} />}
      {opened === 'delete' && (
        <Confirm
          label="Delete"
          title="Delete this customer?"
          object={name === null ? email : `${name}, ${email}`}
          consequence="The access rules of the customer are deleted too. A customer with licenses cannot be deleted."
          onConfirm={() => remove.mutateAsync({ params: { id } })}
          onClose={close}
        />
      )}
    </Screen>
  )
}
