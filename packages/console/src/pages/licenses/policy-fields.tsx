import { type createLicense, type License, licenses, type PolicyType } from '@keyward/contract'
import { Input, NumberInput, type NumberInputProps, SegmentedControl, Switch } from '@mantine/core'
import type { z } from 'zod'

import { call } from '../../api/client.ts'
import type { FieldErrors } from '../../api/input.ts'
import { DateField } from '../../parts/date-field.tsx'
import { endOf, lastDayOf, usualEnds } from '../../parts/days.ts'
import { text } from '../../text.ts'

const TYPE_HINTS = {
  PERPETUAL: 'The license is valid until you revoke it.',
  SUBSCRIPTION: 'The license ends and can be renewed.',
  TRIAL: 'The license ends. It is counted as a trial.',
}
const TYPES = ['SUBSCRIPTION', 'PERPETUAL', 'TRIAL'] as const satisfies readonly PolicyType[]
const SECONDS_PER_MINUTE = 60

/** The terms as the fields show them. An empty `maxMachines` or `maxReleases` means no limit. */
export interface Policy {
  type: PolicyType
  startsWithFirstUse: boolean
  /** The day of the expiry, `YYYY-MM-DD`. */
  expiresOn: string
  days: number | string
  maxMachines: number | string
  isFloating: boolean
  leaseMinutes: number | string
  maxReleases: number | string
  graceDays: number | string
  fileDays: number | string
}

const DAYS = 30
const LEASE_MINUTES = 10

/** Returns the terms that a new license has at first. */
export function newPolicy(): Policy {
  return {
    type: 'SUBSCRIPTION',
    startsWithFirstUse: false,
    expiresOn: usualEnds(null).year,
    days: DAYS,
    maxMachines: 1,
    isFloating: false,
    leaseMinutes: LEASE_MINUTES,
    maxReleases: '',
    graceDays: 0,
    fileDays: '',
  }
}

export function policyOf({ policy }: Pick<License, 'policy'>): Policy {
  const { type, expiresAt, durationDays, maxMachines, leaseSeconds, maxReleases, graceDays, fileDays } = policy
  return {
    type,
    startsWithFirstUse: durationDays !== null && expiresAt === null,
    expiresOn: expiresAt === null ? usualEnds(null).year : lastDayOf(expiresAt),
    days: durationDays ?? DAYS,
    maxMachines: maxMachines ?? '',
    isFloating: leaseSeconds !== null,
    leaseMinutes: leaseSeconds === null ? LEASE_MINUTES : leaseSeconds / SECONDS_PER_MINUTE,
    maxReleases: maxReleases ?? '',
    graceDays,
    fileDays: fileDays ?? '',
  }
}

const numberOf = (value: number | string): number | null => (value === '' ? null : Number(value))

/**
 * Restores the terms of a license, if it still has the version. Omits `durationDays` if the license has an expiry, because its term cannot
 * start again.
 */
export function restorePolicy({ id, policy: { durationDays, ...rest } }: License, version: string): Promise<License> {
  const policy = durationDays !== null && rest.expiresAt !== null ? rest : { ...rest, durationDays }
  return call(licenses.updateLicense, { params: { id }, body: { policy } }, { waits: true, version })
}

/**
 * Returns the policy to send. Keeps the expiry in `before` if its day is unchanged. Keeps `durationDays` of a term that
 * has started.
 */
export function bodyOf(policy: Policy, before?: License): NonNullable<z.input<typeof createLicense>['policy']> {
  const ends = policy.type !== 'PERPETUAL'
  const usesDays = ends && policy.startsWithFirstUse
  const earlier = before?.policy.expiresAt ?? null
  const startedDays = earlier === null ? null : (before?.policy.durationDays ?? null)
  const isSameDay = earlier !== null && lastDayOf(earlier) === policy.expiresOn
  return {
    type: policy.type,
    expiresAt:
      ends && !usesDays ? (isSameDay ? earlier : policy.expiresOn === '' ? null : endOf(policy.expiresOn)) : null,
    durationDays: usesDays ? numberOf(policy.days) : ends ? startedDays : null,
    maxMachines: numberOf(policy.maxMachines),
    leaseSeconds:
      policy.isFloating && policy.maxMachines !== ''
        ? Math.round(Number(policy.leaseMinutes) * SECONDS_PER_MINUTE)
        : null,
    maxReleases: numberOf(policy.maxReleases),
    graceDays: numberOf(policy.graceDays) ?? 0,
    fileDays: numberOf(policy.fileDays),
  }
}

interface Props {
  value: Policy
  onChange: (part: Partial<Policy>) => void
  errors: FieldErrors
}

interface EndProps extends Props {
  /** The present end. */
  endsAt?: string | null
  /** Whether the fields are those of a template, which has no expiry. */
  isTemplate?: boolean
}

const LIMITS = {
  days: { min: 1, max: 36_500 },
  maxMachines: { min: 1, max: 100_000 },
  leaseMinutes: { min: 1, max: 527_040 },
  maxReleases: { min: 0, max: 1_000 },
  graceDays: { min: 0, max: 90 },
  fileDays: { min: 1, max: 366 },
} as const

/** A field for a number. `field` is its name in the API, if it differs. */
function Quantity({
  of: { value, onChange, errors },
  name,
  field = name,
  ...texts
}: Pick<NumberInputProps, 'label' | 'description' | 'required'> & {
  of: Props
  name: keyof typeof LIMITS
  field?: string
}) {
  const change = (quantity: number | string) => {
    const part: Partial<Policy> = {}
    part[name] = quantity
    onChange(part)
  }
  return (
    <NumberInput
      {...texts}
      {...LIMITS[name]}
      value={value[name]}
      onChange={change}
      allowDecimal={name === 'leaseMinutes'}
      error={errors[`policy/${field}`] ?? (name === 'days' ? errors['policy/expiresAt'] : undefined)}
    />
  )
}

/** The end of a license: never, on a day, or some days after the first use. */
export function TermFields({ endsAt = null, isTemplate = false, ...props }: EndProps) {
  const { value, onChange, errors } = props
  const days = { of: props, name: 'days', field: 'durationDays' } as const
  return (
    <>
      <div>
        <Input.Label component="div">Terms</Input.Label>
        <SegmentedControl
          aria-label="Terms"
          data={TYPES.map((type) => ({ value: type, label: text.terms[type] }))}
          value={value.type}
          onChange={(type) => onChange({ type })}
          fullWidth
        />
        <p className="sub">{TYPE_HINTS[value.type]}</p>
      </div>
      {value.type === 'PERPETUAL' ? null : isTemplate ? (
        <Quantity {...days} label="Days from first use" description="Empty: you give each license an end of its own." />
      ) : (
        <>
          <SegmentedControl
            aria-label="The term"
            data={[
              { value: 'day', label: 'Ends on a day' },
              { value: 'use', label: 'Starts with first use' },
            ]}
            value={value.startsWithFirstUse ? 'use' : 'day'}
            onChange={(term) => onChange({ startsWithFirstUse: term === 'use' })}
          />
          {value.startsWithFirstUse ? (
            <Quantity
              {...days}
              label="Days"
              description="The term starts with the first valid check, and lasts this many days."
              required
            />
          ) : (
            <DateField
              label="Expires"
              value={value.expiresOn}
              onChange={(expiresOn) => onChange({ expiresOn })}
              error={errors['policy/expiresAt'] ?? errors['policy/durationDays']}
              endsAt={endsAt}
            />
          )}
        </>
      )}
    </>
  )
}

export function SlotFields(props: Props) {
  const { value, onChange } = props
  return (
    <>
      <Quantity of={props} name="maxMachines" label="Machines at the same time" description="Empty: no limit." />
      <Switch
        label="Floating"
        description="A machine gives its slot back when it makes no check for a while."
        labelPosition="left"
        checked={value.isFloating}
        disabled={value.maxMachines === ''}
        onChange={(event) => onChange({ isFloating: event.currentTarget.checked })}
      />
      {value.isFloating && value.maxMachines !== '' && (
        <Quantity
          of={props}
          name="leaseMinutes"
          field="leaseSeconds"
          label="Minutes without a check until the slot is free"
        />
      )}
    </>
  )
}

/** The rarely used terms: how often apps may release slots, the days of grace, and the lifetime of files. */
export function RareFields(props: Props) {
  return (
    <>
      <Quantity
        of={props}
        name="maxReleases"
        label="Releases by apps in 30 days"
        description="How often apps may release slots themselves. Empty: no limit."
      />
      {props.value.type !== 'PERPETUAL' && (
        <Quantity
          of={props}
          name="graceDays"
          label="Grace period in days"
          description="For so many days after the expiry, checks are still valid."
        />
      )}
      <Quantity
        of={props}
        name="fileDays"
        label="Lifetime of files in days"
        description="How long an app runs without a network. Empty: 30 days, and for a floating license as long as its lease."
      />
    </>
  )
}

/** All terms of a license or a template. */
export function PolicyFields(props: EndProps) {
  return (
    <>
      <TermFields {...props} />
      <SlotFields {...props} />
      <RareFields {...props} />
    </>
  )
}
