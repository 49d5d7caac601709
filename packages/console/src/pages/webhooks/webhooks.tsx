import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { Screen } from '../../parts/page-header.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { EndpointSecret, EndpointWindow } from './endpoint-window.tsx'
import { EventTypes, StateBadge } from './state.tsx'

const COLUMNS: readonly Column<WebhookEndpoint>[] = [
  { title: 'URL', cell: ({ url }) => <span className="mono">{url}</span> },
  { title: 'State', cell: (endpoint) => <StateBadge endpoint={endpoint} /> },
  { title: 'Description', cell: ({ description }) => description ?? '' },
  { title: 'Events to send', cell: ({ types }) => <EventTypes types={types} /> },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Webhooks() {
  const may = useMay()
  const list = useList(webhookEndpoints.listWebhookEndpoints, {})
  const [isCreating, creating] = useDisclosure(false)
  const [created, setCreated] = useState<{ id: string; secret: string } | null>(null)
  const [, navigate] = useLocation()
  const create = may('webhooks.write') && <Button onClick={creating.open}>New endpoint</Button>
  return (
    <Screen title="Webhooks" actions={create}>
      <Text c="dimmed">
        Keyward sends an HTTPS request to your endpoint when something happens, such as a revocation.
      </Text>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/webhooks/${id}`}
        label="Webhooks"
        empty="No endpoints yet. Create one to learn about new machines, overused licenses and expiries without polling."
        create={create}
      />
      {isCreating && (
        <EndpointWindow
          before={null}
          onClose={creating.close}
          onCreated={({ id, secret = '' }) => setCreated({ id, secret })}
        />
      )}
      {created && <EndpointSecret secret={created.secret} onClose={() => navigate(`/webhooks/${created.id}`)} />}
    </Screen>
  )
}
