import type { Me } from '@keyward/contract/management/sign-in'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { Screen } from '../../parts/page-header.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { EndpointWindow, SecretWindow } from './endpoint-window.tsx'
import { StateBadge } from './state.tsx'

function Types({ types }: { types: readonly string[] }) {
  return types.includes('*') ? 'Every event' : <span className="mono">{types.join(', ')}</span>
}

const COLUMNS: readonly Column<WebhookEndpoint>[] = [
  { title: 'URL', cell: ({ url }) => <span className="mono">{url}</span> },
  { title: 'State', cell: (endpoint) => <StateBadge endpoint={endpoint} /> },
  { title: 'Description', cell: ({ description }) => description ?? '' },
  { title: 'Events to send', cell: ({ types }) => <Types types={types} /> },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Webhooks({ me }: { me: Me }) {
  const list = useList(webhookEndpoints.listWebhookEndpoints, {})
  const [isCreating, setIsCreating] = useState(false)
  const [created, setCreated] = useState<{ id: string; secret: string | null } | null>(null)
  const [, navigate] = useLocation()
  const create = me.permissions.includes('webhooks.write') && (
    <Button onClick={() => setIsCreating(true)}>New endpoint</Button>
  )
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
        empty={
          <>
            No endpoints yet. Create one to learn about new machines, overused licenses and expiries without polling.
            <Group>{create}</Group>
          </>
        }
      />
      {isCreating && (
        <EndpointWindow
          onClose={() => setIsCreating(false)}
          onCreated={({ id }, secret) => setCreated({ id, secret })}
        />
      )}
      <SecretWindow
        secret={created?.secret ?? null}
        onClose={() => {
          setCreated(null)
          if (created) navigate(`/webhooks/${created.id}`)
        }}
      />
    </Screen>
  )
}
