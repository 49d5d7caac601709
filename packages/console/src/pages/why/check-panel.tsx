/** The panel that explains a recorded check. The list from which it was opened stays beside it. */

import { licenses } from '@keyward/contract'
import { useQuery } from '@tanstack/react-query'

import { call } from '../../api/client.ts'
import { LicenseKey } from '../../parts/license-key.tsx'
import { SidePanel } from '../../parts/side-panel.tsx'
import { ErrorState, LoadingRows } from '../../parts/states.tsx'
import { text } from '../../text.ts'
import { decideCheck } from './decide.ts'
import { DecisionCard } from './decision-card.tsx'

const t = text.why

export function CheckPanel({
  licenseId,
  machineId,
  canWrite,
  onClose,
}: {
  licenseId: string
  machineId: string
  canWrite: boolean
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
    <SidePanel title={t.panel} onClose={onClose}>
      <p className="check-subject">
        <LicenseKey id={licenseId} /> {machineId !== '' && <span className="mono">{machineId}</span>}
      </p>
      <p className="sub">{t.now}</p>
      {read.error && <ErrorState error={read.error} retry={() => void read.refetch()} />}
      {read.isPending && <LoadingRows rows={6} />}
      {read.data && (
        <DecisionCard
          decision={read.data}
          machineId={machineId}
          canWrite={canWrite}
          onChange={() => void read.refetch()}
        />
      )}
    </SidePanel>
  )
}
