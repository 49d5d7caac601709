import type { activityEntry } from '@keyward/contract/management/activity'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { z } from 'zod'

import { LicenseKey } from '../parts/license-key.tsx'
import { Ago, CodeBadge } from '../parts/parts.tsx'
import { type Column, type ListState, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

/** Loaded when a person opens it, because few do. */
const CheckPanel = lazy(async () => ({ default: (await import('./why/check-panel.tsx')).CheckPanel }))

type Entry = z.infer<typeof activityEntry>
const t = text.activity

function isRefused({ type, code }: Entry): boolean {
  return type === 'CHECK' && code !== undefined && code !== 'VALID'
}

/** Activity as a table. A refused check opens a panel that explains it. */
export function ActivityTable({
  list,
  empty,
  canWrite,
  showsLicense = false,
}: {
  list: ListState<Entry>
  empty: ReactNode
  canWrite: boolean
  showsLicense?: boolean
}) {
  const [explained, setExplained] = useState<Entry | null>(null)
  const columns: Column<Entry>[] = [
    { title: t.at, cell: ({ lastAt }) => <Ago at={lastAt} /> },
    { title: t.event, cell: ({ type }) => t.types[type] },
    {
      title: t.outcome,
      cell: (entry) =>
        entry.code === undefined ? (
          ''
        ) : isRefused(entry) ? (
          <button type="button" className="cell-button" onClick={() => setExplained(entry)}>
            <CodeBadge code={entry.code} />
            <span className="sr-why">{t.why}</span>
          </button>
        ) : (
          <CodeBadge code={entry.code} />
        ),
    },
    { title: t.machine, cell: ({ machineId }) => <span className="mono">{machineId ?? ''}</span> },
    { title: t.count, cell: ({ count }) => count.toLocaleString(), isNumber: true },
  ]
  if (showsLicense) columns.splice(2, 0, { title: t.license, cell: ({ licenseId }) => <LicenseKey id={licenseId} /> })
  return (
    <>
      <ListTable list={list} columns={columns} empty={empty} label={t.title} />
      {explained && (
        <Suspense>
          <CheckPanel
            key={explained.id}
            licenseId={explained.licenseId}
            machineId={explained.machineId ?? ''}
            canWrite={canWrite}
            onClose={() => setExplained(null)}
          />
        </Suspense>
      )}
    </>
  )
}
