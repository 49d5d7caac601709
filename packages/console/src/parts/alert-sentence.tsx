/** An alert as a sentence that names the customer, with a button that opens what the alert is about. */

import { licenses } from '@keyward/contract'
import type { alert } from '@keyward/contract/management/activity'
import { Button } from '@mantine/core'
import { IconDeviceDesktopExclamation, IconWebhook } from '@tabler/icons-react'
import { Link } from 'wouter'
import type { z } from 'zod'

import { useRead } from '../api/hooks.ts'
import { useName } from '../api/names.ts'
import { LicenseKey } from './name.tsx'
import { Ago } from './parts.tsx'

const t = {
  wants: (count: number, max: number | null) =>
    `${count === 1 ? '1 check was refused' : `${count.toLocaleString()} checks were refused`}: ${
      max === 1 ? 'the only slot is taken' : max === null ? 'the slots were taken' : `all ${max} slots are taken`
    }`,
}
export type Alert = z.infer<typeof alert>

/** Says which license refuses machines. */
function Overuse({ licenseId, count, lastAt }: Pick<Alert, 'count' | 'lastAt'> & { licenseId: string }) {
  const read = useRead(licenses.readLicense, { params: { id: licenseId } })
  const customer = useName(read.data?.customerId ?? null)
  const product = useName(read.data?.productId ?? null)
  return (
    <>
      <IconDeviceDesktopExclamation size={18} className="warning-text" aria-hidden="true" />
      <div className="grow">
        <bdi className="name">{customer}</bdi>: {t.wants(count, read.data?.machines.max ?? null)}
        <span className="sub">
          {product} <LicenseKey id={licenseId} /> · <Ago at={lastAt} />
        </span>
      </div>
      <Button size="xs" variant="default" component={Link} href={`/licenses/${licenseId}`}>
        Check
      </Button>
    </>
  )
}

export function AlertSentence({
  alert: { licenseId, webhookEndpointId, connectionId, count, lastAt },
}: {
  alert: Alert
}) {
  if (licenseId !== null) return <Overuse licenseId={licenseId} count={count} lastAt={lastAt} />
  const [sentence, href] =
    connectionId === null
      ? ['A webhook endpoint is disabled.', `/webhooks/${webhookEndpointId ?? ''}`]
      : ['Payments wait until a template lists their price.', '/orders']
  return (
    <>
      <IconWebhook size={18} className="warning-text" aria-hidden="true" />
      <div className="grow">
        {sentence}
        <span className="sub">
          <Ago at={lastAt} />
        </span>
      </div>
      <Button size="xs" variant="default" component={Link} href={href}>
        Open
      </Button>
    </>
  )
}
