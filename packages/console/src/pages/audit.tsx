/** The audit log, with the actor of each change. */

import { type Actor } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { Code } from '@mantine/core'
import type { z } from 'zod'

import { useList } from '../api/hooks.ts'
import { Screen, TextLink, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.audit
type Entry = z.infer<typeof auditEntry>

function nameOf(actor: Actor): string {
  if (actor.type === 'OPERATOR') return t.operator
  if (actor.type === 'SYSTEM') return t.system
  const name = actor.name ?? actor.id ?? actor.type
  return actor.issuedBy?.name === undefined ? name : `${name} (${t.invitedBy(actor.issuedBy.name)})`
}

const SCREENS: Readonly<Record<string, string>> = { license: '/licenses', customer: '/customers' }

function Resource({ entry: { resourceType, resourceId } }: { entry: Entry }) {
  const screen = SCREENS[resourceType]
  const label = `${resourceType.replaceAll('_', ' ')} ${resourceId?.slice(0, 8) ?? ''}`
  return screen === undefined || resourceId === null ? (
    label
  ) : (
    <TextLink href={`${screen}/${resourceId}`}>{label}</TextLink>
  )
}

const COLUMNS: readonly Column<Entry>[] = [
  { title: t.at, cell: ({ at }) => <When at={at} /> },
  { title: t.who, cell: ({ actor }) => nameOf(actor) },
  { title: t.action, cell: ({ action }) => action.replace('.', ' ').replaceAll('_', ' ') },
  { title: t.resource, cell: (entry) => <Resource entry={entry} /> },
  { title: t.changes, cell: ({ changes }) => (changes === null ? '' : <Code>{JSON.stringify(changes)}</Code>) },
]

export default function Audit() {
  return (
    <Screen title={t.title}>
      <ListTable list={useList('/audit-log', auditEntry)} columns={COLUMNS} empty={t.empty} label={t.title} />
    </Screen>
  )
}
