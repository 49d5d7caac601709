/** The running validators, with the number of changes that each validator has not applied yet. */

import { validators } from '@keyward/contract/management/validators'

import { type ItemOf, useList } from '../api/hooks.ts'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.operator
type Validator = ItemOf<typeof validators.listValidators>

const COLUMNS: readonly Column<Validator>[] = [
  { title: t.validator, cell: ({ name }) => name },
  { title: t.version, cell: ({ version }) => version ?? t.oldVersion },
  {
    title: t.ready,
    cell: ({ ready }) => <DotBadge color={ready ? 'teal' : 'red'}>{ready ? t.ready : t.notReady}</DotBadge>,
  },
  { title: t.behind, cell: ({ behindBy }) => (behindBy === null ? t.loading : t.changes(behindBy)) },
  { title: t.seen, cell: ({ seenAt }) => <When at={seenAt} /> },
  { title: t.started, cell: ({ startedAt }) => <When at={startedAt} /> },
]

export default function Validators() {
  const list = useList(validators.listValidators, {})
  return (
    <Screen title={t.validators}>
      <ListTable list={list} columns={COLUMNS} empty={t.noValidators} label={t.validators} />
    </Screen>
  )
}
