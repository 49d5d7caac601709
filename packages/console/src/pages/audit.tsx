/** The audit log: who changed what, with the values before and after each change. The filters are in the URL. */

import { type auditEntry, auditLog } from '@keyward/contract/management/audit'
import { Stack, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import type { z } from 'zod'

import { useList } from '../api/hooks.ts'
import { useName } from '../api/names.ts'
import { actorName } from '../parts/actor.ts'
import { Differences } from '../parts/differences-list.tsx'
import { differencesOf } from '../parts/differences.ts'
import { ExportButton } from '../parts/export-button.tsx'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { TextLink, When } from '../parts/parts.tsx'
import { fromOf, PERIODS } from '../parts/periods.ts'
import { ResourceLink } from '../parts/resource-link.tsx'
import { nameAmong } from '../parts/resource-name.ts'
import { type Column, type ListState, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'

const t = {
  resources: {
    license: 'License',
    customer: 'Customer',
    product: 'Product',
    access_rule: 'Access rule',
    access_rules: 'Access rules',
    access_rule_set: 'Set of rules',
    machine: 'Machine',
    alert: 'Alert',
    member: 'Member',
    passkey: 'Passkey',
    session: 'Session',
    api_key: 'API key',
    management_token: 'Management token',
    access_token: 'Access token',
    signing_key: 'Signing key',
    webhook_endpoint: 'Webhook endpoint',
    connection: 'Connection to a shop',
    mail: 'Mail',
    organization: 'Organization',
  } as Record<string, string>,
  actions: {
    secret_rotated: 'secret replaced',
    key_replaced: 'key replaced',
    resent: 'event sent again',
    replayed: 'events sent again',
    signed_out: 'signed out',
  } as Record<string, string>,
}
const FILTERS = { resourceType: null, hours: null, actorId: null, resourceId: null }
type Entry = z.infer<typeof auditEntry>

function isDeletion({ action }: Entry): boolean {
  return /\.(?:deleted|removed|revoked)$/.test(action) && action !== 'license.revoked'
}

/** The action in words, such as "License suspended". */
function actionOf({ action }: Entry): string {
  const [type = '', done = ''] = action.split('.')
  return `${t.resources[type] ?? type.replaceAll('_', ' ')} ${t.actions[done] ?? done.replaceAll('_', ' ')}`
}

function Resource({ entry }: { entry: Entry }) {
  const { resourceType, resourceId, changes, before } = entry
  const name = useName(resourceId)
  if (resourceId === null) return 'several'
  // Sessions have no names.
  if (resourceType === 'session') return ''
  const shown = name || nameAmong(changes) || nameAmong(before) || resourceId.slice(0, 8)
  return isDeletion(entry) || name === '' ? shown : <ResourceLink type={resourceType} id={resourceId} name={shown} />
}

function Who({ entry: { actor } }: { entry: Entry }) {
  if (actor.id === undefined) return actorName(actor)
  return <TextLink href={`/audit?actorId=${actor.id}`}>{actorName(actor)}</TextLink>
}

function Changes({ entry }: { entry: Entry }) {
  return <Differences list={differencesOf(entry.before, entry.changes, isDeletion(entry))} />
}

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'What', cell: (entry) => <Text size="sm">{actionOf(entry)}</Text> },
  { title: 'On', cell: (entry) => <Resource entry={entry} /> },
  { title: 'Before and after', cell: (entry) => <Changes entry={entry} /> },
  { title: 'Who', cell: (entry) => <Who entry={entry} /> },
  { title: 'At', cell: ({ at }) => <When at={at} /> },
]

/** The only column on narrow screens. It contains the whole entry. */
const NARROW_COLUMNS: readonly Column<Entry>[] = [
  {
    title: 'What',
    cell: (entry) => (
      <Stack gap={4}>
        <Text size="sm" fw={600}>
          {actionOf(entry)}
        </Text>
        <Resource entry={entry} />
        <Changes entry={entry} />
        <Text size="xs" c="dimmed">
          <Who entry={entry} />, <When at={entry.at} />
        </Text>
      </Stack>
    ),
  },
]

/** Changes as a table. Narrow screens show each entry in one cell. */
export function ChangesTable({ list, empty }: { list: ListState<Entry>; empty: string }) {
  const isNarrow = useMediaQuery('(max-width: 48em)', false, { getInitialValueInEffect: false })
  return <ListTable list={list} columns={isNarrow ? NARROW_COLUMNS : COLUMNS} empty={empty} label="Changes" />
}

export default function Audit() {
  const filters = useUrlFilters(FILTERS)
  const [{ hours, ...query }, , clear] = filters
  const input = { query: { ...query, from: fromOf(hours) } }
  const list = useList(auditLog.listAuditLog, input)
  const resourceName = useName(query.resourceId)
  const actor = list.items.find((entry) => entry.actor.id === query.actorId)?.actor
  return (
    <Screen title="Changes" actions={<ExportButton operation={auditLog.exportAuditLog} input={input} />}>
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="resourceType" label="About" names={t.resources} />
        <ChoiceFilter filters={filters} name="hours" label="When" names={PERIODS} />
      </FilterBar>
      {query.resourceId !== null && (
        <Text size="sm">{`Only changes of ${resourceName === '' ? query.resourceId : resourceName}.`}</Text>
      )}
      {query.actorId !== null && (
        <Text size="sm">{`Only changes by ${actor ? actorName(actor) : query.actorId}.`}</Text>
      )}
      <ChangesTable
        list={list}
        empty={clear ? 'No change matches these filters.' : 'Nobody has changed anything yet.'}
      />
    </Screen>
  )
}
