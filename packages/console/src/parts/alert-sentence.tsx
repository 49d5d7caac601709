/** An alert as a sentence that names the customer, with a button that opens what the alert is about. */

import { licenses } from '@keyward/contract'
import type { alert } from '@keyward/contract/management/activity'
import { Button } from '@mantine/core'
import { IconDeviceDesktopExclamation, IconWebhook } from '@tabler/icons-react'
import { Link } from 'wouter'
import type { z } from 'zod'

import { useRead } from '../api/hooks.ts'
import { useName } from '../api/names.ts'
import { text } from '../text.ts'
import { LicenseKey } from './license-key.tsx'
import { Ago } from './parts.tsx'

const t = text.overview
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
        {t.check}
      </Button>
    </>
  )
}

export function AlertSentence({ alert: { licenseId, webhookEndpointId, count, lastAt } }: { alert: Alert }) {
  if (licenseId !== null) return <Overuse licenseId={licenseId} count={count} lastAt={lastAt} />
  return (
    <>
      <IconWebhook size={18} className="warning-text" aria-hidden="true" />
      <div className="grow">
        {t.webhookDisabled}
        <span className="sub">
          <Ago at={lastAt} />
        </span>
      </div>
      <Button size="xs" variant="default" component={Link} href={`/webhooks/${webhookEndpointId ?? ''}`}>
        {t.open}
      </Button>
    </>
  )
}
