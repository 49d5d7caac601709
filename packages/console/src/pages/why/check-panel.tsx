/** The panel that explains a recorded check. The list from which it was opened stays beside it. */

import { licenses } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { useQuery } from '@tanstack/react-query'

import { call } from '../../api/client.ts'
import { LicenseKey } from '../../parts/name.tsx'
import { SidePanel } from '../../parts/side-panel.tsx'
import { ErrorState, LoadingRows } from '../../parts/states.tsx'
import { decideCheck } from './decide.ts'
import { DecisionCard } from './decision-card.tsx'

export function CheckPanel({
  licenseId,
  machineId,
  onClose,
}: {
  licenseId: string
  machineId: string
  onClose: () => void
}) {
  const read = useQuery({
    queryKey: ['check', licenseId, machineId],
    queryFn: async () => {
      const { key } = await call(licenses.readLicense, { params: { id: licenseId } })
      return decideCheck({ licenseKey: key, machineId, ip: '', country: '' })
    },
  })
  return (
    <SidePanel title="Check" onClose={onClose}>
      <p className="check-subject">
        <LicenseKey id={licenseId} /> {machineId !== '' && <span className="mono">{oneLine(machineId)}</span>}
      </p>
      <p className="sub">The decision for the same machine now, without its address. Addresses are not stored.</p>
      {read.error && <ErrorState error={read.error} retry={() => void read.refetch()} />}
      {read.isPending && <LoadingRows rows={6} />}
      {read.data && <DecisionCard decision={read.data} machineId={machineId} onChange={() => void read.refetch()} />}
    </SidePanel>
  )
}
