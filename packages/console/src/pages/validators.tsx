/** The running validators, with the number of changes that each validator has not applied yet. */

import { validatorList } from '@keyward/contract/management/validators'
import type { z } from 'zod'

import { useRead } from '../api/hooks.ts'
import { DotBadge, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.operator
type Validator = z.infer<typeof validatorList>['data'][number]

const COLUMNS: readonly Column<Validator>[] = [
  { title: t.validator, cell: ({ name }) => name },
  {
    title: t.ready,
    cell: ({ ready }) => <DotBadge color={ready ? 'teal' : 'red'}>{ready ? t.ready : t.notReady}</DotBadge>,
  },
  { title: t.behind, cell: ({ behindBy }) => (behindBy === null ? t.loading : t.changes(behindBy)) },
  { title: t.seen, cell: ({ seenAt }) => <When at={seenAt} /> },
  { title: t.started, cell: ({ startedAt }) => <When at={startedAt} /> },
]

export default function Validators() {
  const { data, error, isPending } = useRead('/validators', validatorList)
  const list = {
    items: data?.data ?? [],
    error,
    isPending,
    hasMore: false,
    isLoadingMore: false,
    loadMore: () => undefined,
  }
  return (
    <Screen title={t.validators}>
      <ListTable list={list} columns={COLUMNS} empty={t.noValidators} label={t.validators} />
    </Screen>
  )
}
