/** The window of an action on many licenses. It shows the effect, which the service computes, before the action starts. */

import {
  type JobEffect,
  type JobReason,
  type LicenseAction,
  type licenseAction,
  licenseJobs,
} from '@keyward/contract/management/license-jobs'
import type { InputOf } from '@keyward/contract/operations'
import { Group, NumberInput, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import type { z } from 'zod'

import { ApiError, callAndApply } from '../../api/client.ts'
import { useMutating, useRead } from '../../api/hooks.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { DateField } from '../../parts/date-field.tsx'
import { endOf, usualEnds } from '../../parts/days.ts'
import { fieldErrors } from '../../parts/form.tsx'
import { KeyText } from '../../parts/parts.tsx'
import { ErrorMessage, LoadingRows } from '../../parts/states.tsx'
import { counted } from '../../text.ts'
import type { Target } from './job-target.ts'
import { jobReasons } from './jobs.tsx'

const t = {
  label: {
    suspend: 'Suspend',
    reinstate: 'Reinstate',
    revoke: 'Revoke',
    renew: 'Renew',
    extend: 'Extend',
    delete: 'Delete',
  },
  hint: {
    suspend: 'Within a moment, their checks are rejected with SUSPENDED.',
    reinstate: 'Within a moment, their checks are decided by their terms again.',
    revoke: 'Within a moment, their checks are rejected with REVOKED.',
    renew: 'They end when the day is over.',
    extend: 'The days are added to the end of each license, or to today if the license has ended.',
    delete:
      'Their machines, alerts and access rules are deleted too, and their checks are rejected with NOT_FOUND. A deletion cannot be undone.',
  },
}
const DAYS = 30
const SETTLE_MS = 300

function titleOf(label: string, target: Target): string {
  if ('all' in target) return `${label} all licenses of the organization?`
  return 'ids' in target
    ? `${label} ${counted(target.ids.length, 'license')}?`
    : `${label} all licenses that match the filters?`
}

/** The numbers of licenses that will change and that stay as they are, with some of the latter. */
function Effect({ effect: { total, changed, reasons, examples } }: { effect: JobEffect }) {
  const keysOf = (reason: JobReason) => examples.others.filter((one) => one.reason === reason)
  return (
    <div role="status">
      <b>{`${changed.toLocaleString()} of ${counted(total, 'license')} will change.`}</b>
      {reasons.map(({ reason, count }) => (
        <div key={reason}>
          {`${counted(count, 'license')} will not: ${jobReasons[reason]}.`}
          <Group gap="xs" c="dimmed">
            {keysOf(reason).map(({ id, key }) => key !== null && <KeyText key={id} value={key} />)}
          </Group>
        </div>
      ))}
    </div>
  )
}

/** The values of the fields on which the effect of an action depends. */
interface Values {
  day: string
  days: number | string
}

function actionOf(type: LicenseAction['type'], { day, days }: Values, reason = ''): z.input<typeof licenseAction> {
  switch (type) {
    case 'renew':
      return { type, expiresAt: endOf(day) }
    case 'extend':
      return { type, days: Number(days) }
    case 'suspend':
    case 'revoke':
      return { type, ...(reason !== '' && { reason }) }
    case 'reinstate':
    case 'delete':
      return { type }
    default:
      return type satisfies never
  }
}

/** Returns whether the service has performed no start with the key of the refused one. */
const isRefused = ({ problem: { code, status } }: ApiError): boolean =>
  status < 500 && !code.startsWith('IDEMPOTENCY_KEY_')

const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-')

type StartedBody = NonNullable<InputOf<typeof licenseJobs.startLicenseJob>['body']>

export function JobWindow({
  type,
  target,
  onClose,
  onStarted,
}: {
  type: LicenseAction['type']
  target: Target
  onClose: () => void
  onStarted: () => void
}) {
  const [reason, setReason] = useState('')
  const [values, setValues] = useState<Values>(() => ({ day: usualEnds(null).year, days: DAYS }))
  const [settled] = useDebouncedValue(values, SETTLE_MS)
  // The effect does not depend on the reason.
  const dryRun = useRead(licenseJobs.dryRunLicenseJob, { body: { action: actionOf(type, settled), ...target } })
  // A repetition has the same key until the service refuses the start, so a start whose response was lost is not performed twice.
  const [key, setKey] = useState(newKey)
  const start = useMutating(
    (body: StartedBody) => callAndApply(licenseJobs.startLicenseJob, { body }, { waits: false, idempotencyKey: key }),
    { onDone: onStarted },
  )
  const effect = settled === values ? dryRun.data : undefined
  const errors = fieldErrors(dryRun.error)
  const run = async () => {
    const action = actionOf(type, values, reason.trim())
    try {
      await start.mutateAsync({ action, ...target, ...(effect && { expectedTotal: effect.total }) })
    } catch (error) {
      if (error instanceof ApiError && isRefused(error)) setKey(newKey)
      void dryRun.refetch()
      throw error
    }
  }
  return (
    <Confirm
      label={t.label[type]}
      title={titleOf(t.label[type], target)}
      consequence={t.hint[type]}
      fields={
        <>
          {(type === 'suspend' || type === 'revoke') && (
            <TextInput
              label="Reason"
              description="Optional. Members see it among the changes, and webhooks contain it."
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
              data-autofocus
            />
          )}
          {type === 'renew' && (
            <DateField
              label="Expires"
              value={values.day}
              onChange={(day) => setValues({ ...values, day })}
              error={errors['action/expiresAt']}
              endsAt={null}
            />
          )}
          {type === 'extend' && (
            <NumberInput
              label="Days"
              value={values.days}
              onChange={(days) => setValues({ ...values, days })}
              error={errors['action/days']}
              data-autofocus
            />
          )}
          {start.isPending ? null : dryRun.error ? (
            <ErrorMessage error={dryRun.error} />
          ) : effect ? (
            <Effect effect={effect} />
          ) : (
            <LoadingRows rows={1} />
          )}
        </>
      }
      isDangerous={type === 'delete' || type === 'revoke'}
      typed={type === 'delete' && effect ? String(effect.changed) : ''}
      isDisabled={!effect || effect.changed === 0}
      onConfirm={run}
      onClose={onClose}
    />
  )
}
