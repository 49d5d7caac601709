/** Actions on many licenses: those that are selected in the list, or all that match its filters. The service performs them as jobs. */

import { type LicenseAction, MAX_JOB_IDS } from '@keyward/contract/management/license-jobs'
import { Button, Menu, Text } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'

import { MoreMenu } from '../../parts/parts.tsx'
import { SelectionBar } from '../../parts/table.tsx'
import { counted } from '../../text.ts'
import type { Target } from './job-target.ts'

/** Loaded when a person chooses an action, because its fields are large. */
const JobWindow = lazy(async () => ({ default: (await import('./job-window.tsx')).JobWindow }))

export function SelectedLicenses({
  target,
  count,
  whole,
  onDone,
}: {
  target: Target
  /** The number of selected licenses. */
  count: number
  /** All licenses that match the filters of the list, if they can be selected instead. */
  whole: { target: Target; total: number; onSelect: () => void } | null
  onDone: () => void
}) {
  /** The chosen action, with the licenses that were selected then. */
  const [chosen, setChosen] = useState<{ type: LicenseAction['type']; target: Target } | null>(null)
  const choose = (type: LicenseAction['type']) => setChosen({ type, target })
  const isTooMany = 'ids' in target && target.ids.length > MAX_JOB_IDS
  const button = (one: LicenseAction['type'], label: string) => (
    <Button size="xs" variant="default" onClick={() => choose(one)}>
      {label}
    </Button>
  )
  return (
    <SelectionBar
      count={count}
      offer={
        whole && (
          <Button size="xs" variant="subtle" onClick={whole.onSelect}>
            {'all' in whole.target
              ? `Select all ${counted(whole.total, 'license')} of the organization`
              : `Select all ${whole.total.toLocaleString()} that match`}
          </Button>
        )
      }
      onClear={onDone}
    >
      {isTooMany ? (
        <Text size="sm">{`Select at most ${MAX_JOB_IDS.toLocaleString()} licenses, or all that match.`}</Text>
      ) : (
        <>
          {button('suspend', 'Suspend')}
          {button('reinstate', 'Reinstate')}
          {button('renew', 'Renew')}
          <MoreMenu>
            <Menu.Item onClick={() => choose('extend')}>Extend</Menu.Item>
            <Menu.Divider />
            <Menu.Item color="red" onClick={() => choose('revoke')}>
              Revoke
            </Menu.Item>
            <Menu.Item color="red" onClick={() => choose('delete')}>
              Delete
            </Menu.Item>
          </MoreMenu>
        </>
      )}
      {chosen && (
        <Suspense>
          <JobWindow {...chosen} onClose={() => setChosen(null)} onStarted={onDone} />
        </Suspense>
      )}
    </SelectionBar>
  )
}
