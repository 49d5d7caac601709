/** A table of access rules with their counters, and actions on one rule or on the selected rules. */

import { type AccessRule, accessRules } from '@keyward/contract'
import type { InputOf } from '@keyward/contract/operations'
import { Button, Group, Paper, Text } from '@mantine/core'
import { IconDeviceDesktop, IconFlag, IconPencil, IconTrash, IconUser, IconWorld } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'

import { useCall, useList } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { LicenseKey } from '../../parts/license-key.tsx'
import { DotBadge, IconButton, TextLink, When } from '../../parts/parts.tsx'
import { type Column, ListTable, type Sorting } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import { EditRule } from './edit-rule.tsx'
import { setPath } from './paths.ts'
import { canRestore, restoreRules } from './restore.ts'
import { countryName } from './rule-fields.tsx'

const t = text.rules
const MAX_DELETED = 1_000

const TYPE_ICONS = { IP: IconWorld, HWID: IconDeviceDesktop, COUNTRY: IconFlag, CUSTOMER: IconUser } as const
const KIND_COLORS = { BLACKLIST: 'red', EXCLUSION: 'teal', RESTRICTION: 'blue' } as const

function KindBadge({ rule: { kind, mode } }: { rule: AccessRule }) {
  return (
    <DotBadge color={mode === 'MONITOR' ? 'gray' : KIND_COLORS[kind]}>
      {mode === 'MONITOR' ? t.monitoredKind(text.kinds[kind]) : text.kinds[kind]}
    </DotBadge>
  )
}

function ProductName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/products/${id}`}>{name === '' ? text.scopes.PRODUCT : name}</TextLink>
}

function Applies({ rule: { scope, scopeId } }: { rule: AccessRule }) {
  if (scope === 'LICENSE' && scopeId !== null) return <LicenseKey id={scopeId} />
  if (scope === 'PRODUCT' && scopeId !== null) return <ProductName id={scopeId} />
  return text.scopes.ORGANIZATION
}

function Ends({ at }: { at: string | null }) {
  if (at !== null && Date.parse(at) <= Date.now()) return <DotBadge color="gray">{t.expired}</DotBadge>
  return <When at={at} />
}

function CustomerName({ id }: { id: string }) {
  const name = useName(id)
  return <TextLink href={`/customers/${id}`}>{name === '' ? text.types.CUSTOMER : name}</TextLink>
}

function Value({ rule: { value, type, note } }: { rule: AccessRule }) {
  const Icon = TYPE_ICONS[type]
  return (
    <div className="rule-value">
      <span className="rule-type" role="img" aria-label={text.types[type]} title={text.types[type]}>
        <Icon size={18} stroke={1.5} aria-hidden="true" />
      </span>
      {type === 'CUSTOMER' ? (
        <CustomerName id={value} />
      ) : type === 'COUNTRY' ? (
        <Text size="sm">{countryName(value)}</Text>
      ) : (
        <span className="mono">{value}</span>
      )}
      {note !== null && note !== '' && (
        <Text size="xs" c="dimmed" lineClamp={1} maw={260}>
          {note}
        </Text>
      )}
    </div>
  )
}

/** The bar of actions on the selected rules. */
function SelectedRules({ rules, onDone }: { rules: readonly AccessRule[]; onDone: () => void }) {
  const removed = rules.slice(0, MAX_DELETED)
  const remove = useCall(accessRules.deleteAccessRules, {
    done: ({ deleted }) => t.deletedMany(deleted),
    undo: () => restoreRules(removed),
    canUndo: () => removed.some(canRestore),
    onDone,
  })
  const matches = rules.reduce((sum, { matchCount }) => sum + matchCount, 0)
  return (
    <Paper withBorder p="xs" className="selected" role="region" aria-label={text.selected(rules.length)}>
      <Group justify="space-between">
        <Text size="sm" fw={600}>
          {text.selected(rules.length)}
        </Text>
        <Group gap="xs">
          <Button size="xs" variant="subtle" color="gray" onClick={onDone}>
            {text.clearSelection}
          </Button>
          <ConfirmButton
            size="xs"
            label={t.deleteMany(rules.length)}
            title={t.deleteManyTitle(rules.length)}
            consequence={t.deleteManyHint(matches)}
            onConfirm={() => remove.mutateAsync({ body: { ids: removed.map(({ id }) => id) } })}
            isPending={remove.isPending}
          />
        </Group>
      </Group>
    </Paper>
  )
}

function DeleteRule({ rule }: { rule: AccessRule }) {
  const remove = useCall(accessRules.deleteAccessRule, {
    done: t.deleted,
    undo: () => restoreRules([rule]),
    canUndo: () => canRestore(rule),
  })
  return (
    <ConfirmButton
      icon={<IconTrash size={16} />}
      label={t.delete}
      title={t.deleteTitle}
      consequence={t.deleteHint}
      onConfirm={() => remove.mutateAsync({ params: { id: rule.id } })}
    />
  )
}

function columnsOf(
  onEdit: (rule: AccessRule) => void,
  canWrite: boolean,
  hasSets: boolean,
): readonly Column<AccessRule>[] {
  const columns: Column<AccessRule>[] = [
    { title: t.value, cell: (rule) => <Value rule={rule} /> },
    { title: t.kind, cell: (rule) => <KindBadge rule={rule} /> },
    { title: t.scope, cell: (rule) => <Applies rule={rule} /> },
    {
      title: t.matches,
      cell: ({ matchCount }) => matchCount.toLocaleString(),
      isNumber: true,
      sortKey: 'matchCount',
    },
    { title: t.lastMatch, cell: ({ lastMatchedAt }) => <When at={lastMatchedAt} />, sortKey: 'lastMatchedAt' },
    { title: t.expires, cell: ({ expiresAt }) => <Ends at={expiresAt} /> },
  ]
  if (hasSets)
    columns.splice(3, 0, {
      title: t.set,
      cell: ({ set }) => (set === null ? '' : <TextLink href={setPath(set)}>{set}</TextLink>),
    })
  if (canWrite)
    columns.push({
      title: text.actions,
      cell: (rule) => (
        <Group gap={0} wrap="nowrap" justify="flex-end">
          <IconButton label={t.edit} icon={<IconPencil size={16} />} onClick={() => onEdit(rule)} />
          <DeleteRule rule={rule} />
        </Group>
      ),
    })
  return columns
}

export function RulesTable({
  filters,
  sorting,
  empty,
  label,
  canWrite,
}: {
  filters: NonNullable<InputOf<typeof accessRules.listAccessRules>['query']>
  sorting?: Sorting
  empty: ReactNode
  label: string
  canWrite: boolean
}) {
  const list = useList(accessRules.listAccessRules, { query: filters })
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const [edited, setEdited] = useState<AccessRule | null>(null)
  const columns = columnsOf(
    setEdited,
    canWrite,
    list.items.some(({ set }) => set !== null),
  )
  const selected = list.items.filter(({ id }) => ids.has(id))
  return (
    <>
      {selected.length > 0 && <SelectedRules rules={selected} onDone={() => setIds(new Set())} />}
      <ListTable
        list={list}
        columns={columns}
        label={label}
        empty={empty}
        {...(sorting && { sorting })}
        selection={canWrite ? { ids, onChange: setIds, nameOf: ({ value }) => value } : undefined}
      />
      {edited && <EditRule key={edited.id} rule={edited} onClose={() => setEdited(null)} />}
    </>
  )
}
