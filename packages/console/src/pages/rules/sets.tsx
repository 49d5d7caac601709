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
import { text } from '../../text.ts'
import { replacePath, setPath } from './paths.ts'

const t = text.ruleSets
type Row = AccessRuleSet & { id: string }

const COLUMNS: readonly Column<Row>[] = [
  { title: t.name, cell: ({ name }) => name },
  { title: t.rules, cell: ({ rules }) => rules.toLocaleString(), isNumber: true },
  { title: t.updated, cell: ({ updatedAt }) => <When at={updatedAt} /> },
  { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

export default function Sets({ me }: { me: Me }) {
  const list = useList(accessRuleSets.listAccessRuleSets, {})
  const rows = useMemo(() => list.items.map((one): Row => Object.assign({ id: one.name }, one)), [list.items])
  const [name, setName] = useState<string | null>(null)
  const [, navigate] = useLocation()
  const canWrite = me.permissions.includes('licenses.write')
  const create = canWrite && <Button onClick={() => setName('')}>{t.new}</Button>
  return (
    <Screen title={t.title} actions={create}>
      <Text c="dimmed">{t.intro}</Text>
      <ListTable
        list={{ ...list, items: rows }}
        columns={COLUMNS}
        href={(one) => setPath(one.name)}
        label={t.title}
        empty={
          <>
            {t.empty}
            {create}
          </>
        }
      />
      <FormWindow
        title={t.new}
        action={t.new}
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={async () => {
          if (name?.trim()) navigate(replacePath(name.trim()))
        }}
      >
        {() => (
          <TextInput
            label={t.name}
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
