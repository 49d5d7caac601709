import { type AccessRuleSet, accessRuleSets } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Text, TextInput } from '@mantine/core'
import { useMemo, useState } from 'react'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { FormWindow } from '../../parts/form.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { When } from '../../parts/parts.tsx'
import { type Column, ListTable } from '../../parts/table.tsx'
import { replacePath, setPath } from './paths.ts'
type Row = AccessRuleSet & { id: string }

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Rules', cell: ({ rules }) => rules.toLocaleString(), isNumber: true },
  { title: 'Updated', cell: ({ updatedAt }) => <When at={updatedAt} /> },
  { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Sets({ me }: { me: Me }) {
  const list = useList(accessRuleSets.listAccessRuleSets, {})
  const rows = useMemo(() => list.items.map((one): Row => Object.assign({ id: one.name }, one)), [list.items])
  const [name, setName] = useState<string | null>(null)
  const [, navigate] = useLocation()
  const canWrite = me.permissions.includes('licenses.write')
  const create = canWrite && <Button onClick={() => setName('')}>New set</Button>
  return (
    <Screen title="Sets of rules" actions={create}>
      <Text c="dimmed">A set is a list of rules that is replaced as a whole, such as a feed of addresses.</Text>
      <ListTable
        list={{ ...list, items: rows }}
        columns={COLUMNS}
        href={(one) => setPath(one.name)}
        label="Sets of rules"
        empty={
          <>
            No sets yet. Create one from a list of addresses, and replace it when the list changes.
            {create}
          </>
        }
      />
      <FormWindow
        title="New set"
        action="New set"
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={async () => {
          if (name?.trim()) navigate(replacePath(name.trim()))
        }}
      >
        {() => (
          <TextInput
            label="Name"
            value={name ?? ''}
            onChange={(event) => setName(event.currentTarget.value)}
            maxLength={64}
            required
            data-autofocus
          />
        )}
      </FormWindow>
    </Screen>
  )
}
