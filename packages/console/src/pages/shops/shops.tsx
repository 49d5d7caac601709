import { commerce, type Connection } from '@keyward/contract/management/commerce'
import { Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { Screen } from '../../parts/page-header.tsx'
import { DotBadge, When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { ConnectionWindow } from './connection-window.tsx'
import { MODES, SHOPS } from './names.ts'

const COLUMNS: readonly Column<Connection>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Shop', cell: ({ shop }) => SHOPS[shop] },
  { title: 'Mode', cell: ({ mode }) => <DotBadge color={mode === 'live' ? 'teal' : 'gray'}>{MODES[mode]}</DotBadge> },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Shops() {
  const may = useMay()
  const list = useList(commerce.listConnections, {})
  const [isCreating, creating] = useDisclosure(false)
  const [, navigate] = useLocation()
  const create = may('orders.write') && <Button onClick={creating.open}>Connect a shop</Button>
  return (
    <Screen title="Shops" actions={create}>
      <Text c="dimmed">Your shop reports each payment to Keyward, which creates, extends and ends the licenses.</Text>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/shops/${id}`}
        label="Shops"
        empty="No shop is connected. Connect one to sell licenses without code of your own."
        create={create}
      />
      {isCreating && (
        <ConnectionWindow before={null} onClose={creating.close} onCreated={({ id }) => navigate(`/shops/${id}`)} />
      )}
    </Screen>
  )
}
