import type { activityEntry } from '@keyward/contract/management/activity'
import { oneLine } from '@keyward/contract/text'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { z } from 'zod'

import { LicenseKey } from '../parts/name.tsx'
import { Ago, CodeBadge } from '../parts/parts.tsx'
import { type Column, type ListState, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

/** Loaded when a person opens it, because few do. */
const CheckPanel = lazy(async () => ({ default: (await import('./why/check-panel.tsx')).CheckPanel }))

type Entry = z.infer<typeof activityEntry>

function isRefused({ type, code }: Entry): boolean {
  return type === 'CHECK' && code !== undefined && code !== 'VALID'
}

/** Activity as a table. A refused check opens a panel that explains it. */
export function ActivityTable({
  list,
  empty,
  showsLicense = false,
}: {
  list: ListState<Entry>
  empty: ReactNode
  showsLicense?: boolean
}) {
  const [explained, setExplained] = useState<Entry | null>(null)
  const columns: Column<Entry>[] = [
    { title: 'At', cell: ({ lastAt }) => <Ago at={lastAt} /> },
    { title: 'Event', cell: ({ type }) => text.activities[type] },
    {
      title: 'Outcome',
      cell: (entry) =>
        entry.code === undefined ? (
          ''
        ) : isRefused(entry) ? (
          <button type="button" className="cell-button" onClick={() => setExplained(entry)}>
            <CodeBadge code={entry.code} />
            <span className="sr-why">Why?</span>
          </button>
        ) : (
          <CodeBadge code={entry.code} />
        ),
    },
    { title: 'Machine', cell: ({ machineId }) => <span className="mono">{oneLine(machineId ?? '')}</span> },
    { title: 'Times', cell: ({ count }) => count.toLocaleString(), isNumber: true },
  ]
  if (showsLicense) columns.splice(2, 0, { title: 'License', cell: ({ licenseId }) => <LicenseKey id={licenseId} /> })
  return (
    <>
      <ListTable list={list} columns={columns} empty={empty} label="Activity" />
      {explained && (
        <Suspense>
          <CheckPanel
            key={explained.id}
            licenseId={explained.licenseId}
            machineId={explained.machineId ?? ''}
            onClose={() => setExplained(null)}
          />
        </Suspense>
      )}
    </>
  )
}
