/** The machines that a license has refused because its slots were taken. */

import type { License, machines } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import { oneLine } from '@keyward/contract/text'
import { IconDeviceDesktopExclamation } from '@tabler/icons-react'

import { type ItemOf, useList } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { distance } from '../../parts/distance.ts'
import { FreeSlotMenu, LetThroughMenu, machineName } from '../../parts/let-through.tsx'
import { fromOf } from '../../parts/periods.ts'
import { counted } from '../../text.ts'

const t = {
  refused: (count: number, since: string) =>
    count === 1 ? `was refused ${since}` : `was refused ${count.toLocaleString()} times, first ${since}`,
  free: (last: string) => `A slot is free now. Last try ${last}.`,
  taken: (holders: readonly string[], used: number, last: string) =>
    `${used === 1 ? 'The only slot is' : `All ${used} slots are`} taken by ${new Intl.ListFormat('en').format(holders)}. Last try ${last}.`,
}
const HOURS = '168'
/** The number of machines that the banner names. */
const MAX_NAMES = 5
type Machine = ItemOf<typeof machines.listMachines>

export interface Refusal {
  machineId: string
  count: number
  firstAt: string
  lastAt: string
}

/** Returns the machines that the license refused within a week and that hold no slot now, the latest first. */
export function useRefusals(licenseId: string, holders: readonly Machine[], refreshMs: number): Refusal[] {
  const query = { code: 'TOO_MANY_MACHINES', from: fromOf(HOURS) } as const
  const { items } = useList(activity.listLicenseActivity, { params: { id: licenseId }, query }, refreshMs)
  const refused = new Map<string, Refusal>()
  for (const { machineId, count, firstAt, lastAt } of items) {
    if (machineId === undefined || holders.some((one) => one.machineId === machineId)) continue
    const before = refused.get(machineId)
    refused.set(machineId, {
      machineId,
      count: count + (before?.count ?? 0),
      firstAt: before === undefined || firstAt < before.firstAt ? firstAt : before.firstAt,
      lastAt: before === undefined || lastAt > before.lastAt ? lastAt : before.lastAt,
    })
  }
  return [...refused.values()].toSorted((a, b) => b.lastAt.localeCompare(a.lastAt))
}

/** Says which machine was refused last and why, with both remedies. */
export function RefusalBanner({
  license: {
    id: licenseId,
    machines: { used, max },
  },
  refusal: { machineId, count, firstAt, lastAt },
  holders,
}: {
  license: License
  refusal: Refusal
  holders: readonly Machine[]
}) {
  const may = useMay()
  const last = distance(lastAt)
  const names = holders.slice(0, MAX_NAMES).map(machineName)
  const others = used - names.length
  if (others > 0) names.push(counted(others, 'other'))
  return (
    <section className="banner" aria-label="Refused machine">
      <IconDeviceDesktopExclamation size={20} aria-hidden="true" />
      <div className="grow">
        <strong>
          <span className="mono">{oneLine(machineId)}</span> {t.refused(count, distance(firstAt))}
        </strong>
        <p>{max === null || used < max ? t.free(last) : t.taken(names, used, last)}</p>
      </div>
      {may('licenses.write') && (
        <div className="banner-actions">
          <LetThroughMenu licenseId={licenseId} machineId={machineId} />
          <FreeSlotMenu licenseId={licenseId} holders={holders} />
        </div>
      )}
    </section>
  )
}
