import type { Me } from '@keyward/contract/management/sign-in'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { Screen } from '../../parts/page-header.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import { EndpointWindow, SecretWindow } from './endpoint-window.tsx'
import { StateBadge } from './state.tsx'

const t = text.webhooks

function Types({ types }: { types: readonly string[] }) {
  return types.includes('*') ? t.everyEvent : <span className="mono">{types.join(', ')}</span>
}

const COLUMNS: readonly Column<WebhookEndpoint>[] = [
  { title: t.url, cell: ({ url }) => <span className="mono">{url}</span> },
  { title: t.state, cell: (endpoint) => <StateBadge endpoint={endpoint} /> },
  { title: t.description, cell: ({ description }) => description ?? '' },
  { title: t.types, cell: ({ types }) => <Types types={types} /> },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Webhooks({ me }: { me: Me }) {
  const list = useList(webhookEndpoints.listWebhookEndpoints, {})
  const [isCreating, setIsCreating] = useState(false)
  const [created, setCreated] = useState<{ id: string; secret: string | null } | null>(null)
  const [, navigate] = useLocation()
  const create = me.permissions.includes('webhooks.write') && (
    <Button onClick={() => setIsCreating(true)}>{t.new}</Button>
  )
  return (
    <Screen title={t.title} actions={create}>
      <Text c="dimmed">{t.intro}</Text>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/webhooks/${id}`}
        label={t.title}
        empty={
          <>
            {t.empty}
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
