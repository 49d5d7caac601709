import { type AccessRuleSet, accessRuleSets } from '@keyward/contract'
import { Button, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMemo } from 'react'
import { useLocation } from 'wouter'

import { useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { useFields } from '../../parts/fields.ts'
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

function NewSet({ onClose }: { onClose: () => void }) {
  const [, navigate] = useLocation()
  const { values, text: field } = useFields({ name: '' })
  const open = async () => {
    if (values.name.trim() !== '') navigate(replacePath(values.name.trim()))
  }
  return (
    <FormWindow title="New set" action="New set" onClose={onClose} onSubmit={open}>
      {() => <TextInput label="Name" {...field('name')} maxLength={64} required data-autofocus />}
    </FormWindow>
  )
}

export default function Sets() {
  const may = useMay()
  const list = useList(accessRuleSets.listAccessRuleSets, {})
  const rows = useMemo(() => list.items.map((one): Row => Object.assign({ id: one.name }, one)), [list.items])
  const [isNaming, naming] = useDisclosure(false)
  const create = may('licenses.write') && <Button onClick={naming.open}>New set</Button>
  return (
    <Screen title="Sets of rules" actions={create}>
      <Text c="dimmed">A set is a list of rules that is replaced as a whole, such as a feed of addresses.</Text>
      <ListTable
        list={{ ...list, items: rows }}
        columns={COLUMNS}
        href={(one) => setPath(one.name)}
        label="Sets of rules"
        empty="No sets yet. Create one from a list of addresses, and replace it when the list changes."
        create={create}
      />
      {isNaming && <NewSet onClose={naming.close} />}
    </Screen>
  )
}
