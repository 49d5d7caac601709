/** A table of access rules with their counters, and actions on one rule or on the selected rules. */

import { type AccessRule, accessRules, RULE_MODES } from '@keyward/contract'
import type { InputOf } from '@keyward/contract/operations'
import { Group } from '@mantine/core'
import { IconPencil, IconTrash } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'

import { useCall, useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Ago, DotBadge, IconButton } from '../../parts/parts.tsx'
import { type Column, ListTable, SelectionBar, type Sorting } from '../../parts/table.tsx'
import { counted, text } from '../../text.ts'
import { EditRule } from './edit-rule.tsx'
import { canRestore, restoreRules } from './restore.ts'
import { RuleCell, RuleSentence } from './sentence.tsx'
import { ModeButton } from './set-mode.tsx'

/** The maximum number of rules of one request. */
const MAX_RULES = 1_000

function Ends({ at }: { at: string | null }) {
  if (at !== null && Date.parse(at) <= Date.now()) return <DotBadge color="gray">Expired</DotBadge>
  return at === null ? <span className="faint">never</span> : <Ago at={at} />
}

/** The bar of actions on the selected rules. */
function SelectedRules({ rules, onDone }: { rules: readonly AccessRule[]; onDone: () => void }) {
  const removed = rules.slice(0, MAX_RULES)
  const remove = useCall(accessRules.deleteAccessRules, {
    done: ({ deleted }) => text.deletedRules(deleted),
    undo: () => restoreRules(removed),
    canUndo: () => removed.some(canRestore),
    onDone,
  })
  const matches = rules.reduce((sum, { matchCount }) => sum + matchCount, 0)
  return (
    <SelectionBar count={rules.length} onClear={onDone}>
      {RULE_MODES.map((mode) => {
        const others = rules.filter((rule) => rule.mode !== mode).map(({ id }) => id)
        return (
          others.length > 0 && (
            <ModeButton
              key={mode}
              size="xs"
              mode={mode}
              selection={{ ids: others.slice(0, MAX_RULES) }}
              changed={others.slice(0, MAX_RULES)}
              onDone={onDone}
            />
          )
        )
      })}
      <ConfirmButton
        size="xs"
        label={`Delete ${counted(rules.length, 'rule')}`}
        title={`Delete ${counted(rules.length, 'rule')}?`}
        consequence={`The rules stop matching within a moment. Together they have matched ${matches.toLocaleString()} checks. Their counters are deleted too.`}
        onConfirm={() => remove.mutateAsync({ body: { ids: removed.map(({ id }) => id) } })}
      />
    </SelectionBar>
  )
}

function DeleteRule({ rule }: { rule: AccessRule }) {
  const remove = useCall(accessRules.deleteAccessRule, {
    done: 'Deleted the rule.',
    undo: () => restoreRules([rule]),
    canUndo: () => canRestore(rule),
  })
  return (
    <ConfirmButton
      icon={<IconTrash size={16} />}
      label="Delete"
      title="Delete this rule?"
      object={<RuleSentence rule={rule} />}
      consequence="The rule stops matching within a moment."
      onConfirm={() => remove.mutateAsync({ params: { id: rule.id } })}
    />
  )
}

function columnsOf(onEdit: (rule: AccessRule) => void, canWrite: boolean): readonly Column<AccessRule>[] {
  const columns: Column<AccessRule>[] = [
    { title: 'Rule', cell: (rule) => <RuleCell rule={rule} /> },
    {
      title: 'Matches',
      cell: ({ matchCount }) => matchCount.toLocaleString(),
      isNumber: true,
      sortKey: 'matchCount',
    },
    { title: 'Last match', cell: ({ lastMatchedAt }) => <Ago at={lastMatchedAt} />, sortKey: 'lastMatchedAt' },
    { title: 'Ends', cell: ({ expiresAt }) => <Ends at={expiresAt} /> },
  ]
  if (canWrite)
    columns.push({
      title: text.actions,
      cell: (rule) => (
        <Group gap={0} wrap="nowrap" justify="flex-end">
          <IconButton label="Change" icon={<IconPencil size={16} />} onClick={() => onEdit(rule)} />
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
  create,
  label,
}: {
  filters: NonNullable<InputOf<typeof accessRules.listAccessRules>['query']>
  sorting?: Sorting
  empty: ReactNode
  create?: ReactNode
  label: string
}) {
  const canWrite = useMay()('licenses.write')
  const list = useList(accessRules.listAccessRules, { query: filters })
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const [edited, setEdited] = useState<AccessRule | null>(null)
  const columns = columnsOf(setEdited, canWrite)
  const selected = list.items.filter(({ id }) => ids.has(id))
  return (
    <>
      {selected.length > 0 && <SelectedRules rules={selected} onDone={() => setIds(new Set())} />}
      <ListTable
        list={list}
        columns={columns}
        label={label}
        empty={empty}
        create={create}
        hasTwoLines
        {...(sorting && { sorting })}
        selection={canWrite ? { ids, onChange: setIds, nameOf: ({ value }) => value } : undefined}
      />
      {edited && <EditRule key={edited.id} rule={edited} onClose={() => setEdited(null)} />}
    </>
  )
}
