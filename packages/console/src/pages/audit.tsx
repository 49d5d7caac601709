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
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.audit
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
  if (resourceId === null) return t.many
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
  { title: t.action, cell: (entry) => <Text size="sm">{actionOf(entry)}</Text> },
  { title: t.resource, cell: (entry) => <Resource entry={entry} /> },
  { title: t.changes, cell: (entry) => <Changes entry={entry} /> },
  { title: t.who, cell: (entry) => <Who entry={entry} /> },
  { title: t.at, cell: ({ at }) => <When at={at} /> },
]

/** The only column on narrow screens. It contains the whole entry. */
const NARROW_COLUMNS: readonly Column<Entry>[] = [
  {
    title: t.action,
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

function csvRow({ at, actor, action, resourceType, resourceId, before, changes }: Entry) {
  const json = (value: object | null) => value && JSON.stringify(value)
  return { at, by: actorName(actor), action, resourceType, resourceId, before: json(before), changes: json(changes) }
}

export default function Audit() {
  const isNarrow = useMediaQuery('(max-width: 48em)', false, { getInitialValueInEffect: false })
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const { hours, ...query } = filters
  const input = { query: { ...query, from: fromOf(hours) } }
  const list = useList(auditLog.listAuditLog, input)
  const resourceName = useName(filters.resourceId)
  const actor = list.items.find((entry) => entry.actor.id === filters.actorId)?.actor
  return (
    <Screen
      title={t.title}
      actions={<ExportButton operation={auditLog.listAuditLog} input={input} file="changes" row={csvRow} />}
    >
      <FilterBar onClear={clear}>
        <ChoiceFilter
          label={t.about}
          names={t.resources}
          value={filters.resourceType}
          onChange={(resourceType) => setFilters({ resourceType })}
        />
        <ChoiceFilter
          label={t.period}
          names={PERIODS}
          value={hours}
          onChange={(value) => setFilters({ hours: value })}
        />
      </FilterBar>
      {filters.resourceId !== null && (
        <Text size="sm">{t.onlyOf(resourceName === '' ? filters.resourceId : resourceName)}</Text>
      )}
      {filters.actorId !== null && <Text size="sm">{t.onlyBy(actor ? actorName(actor) : filters.actorId)}</Text>}
      <ListTable
        list={list}
        columns={isNarrow ? NARROW_COLUMNS : COLUMNS}
        empty={clear ? t.emptyFiltered : t.empty}
        label={t.title}
      />
    </Screen>
  )
}
