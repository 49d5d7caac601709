import type { activityEntry } from '@keyward/contract/management/activity'
import type { ReactNode } from 'react'
import type { z } from 'zod'

import { text } from '../text.ts'
import { LicenseKey } from './license-key.tsx'
import { CodeBadge, When } from './parts.tsx'
import { type Column, type ListState, ListTable } from './table.tsx'

type Entry = z.infer<typeof activityEntry>
const t = text.activity

const COLUMNS: readonly Column<Entry>[] = [
  { title: t.at, cell: ({ lastAt }) => <When at={lastAt} /> },
  { title: t.event, cell: ({ type }) => t.types[type] },
  { title: t.outcome, cell: ({ code }) => (code === undefined ? '' : <CodeBadge code={code} />) },
  { title: t.machine, cell: ({ machineId }) => <span className="mono">{machineId ?? ''}</span> },
  { title: t.count, cell: ({ count }) => count.toLocaleString(), isNumber: true },
]

const LICENSE: Column<Entry> = {
  title: t.license,
  cell: ({ licenseId }) => <LicenseKey id={licenseId} />,
}

export function ActivityTable({
  list,
  empty,
  showsLicense = false,
}: {
  list: ListState<Entry>
  empty: ReactNode
  showsLicense?: boolean
}) {
  const [at, event, ...rest] = COLUMNS
  const columns = showsLicense && at && event ? [at, event, LICENSE, ...rest] : COLUMNS
  return <ListTable list={list} columns={columns} empty={empty} label={t.title} />
}
