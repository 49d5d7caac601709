import { type createLicense, DEFAULT_FILE_DAYS, type License, licenses, type PolicyType } from '@keyward/contract'
import { Input, NumberInput, SegmentedControl, Switch } from '@mantine/core'
import type { z } from 'zod'

import { call } from '../../api/client.ts'
import type { FieldErrors } from '../../api/input.ts'
import { DateField } from '../../parts/date-field.tsx'
import { endOf, lastDayOf, usualEnds } from '../../parts/days.ts'
import { text } from '../../text.ts'

const t = text.licenses
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
    fileDays: DEFAULT_FILE_DAYS,
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
    fileDays,
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
    fileDays: numberOf(policy.fileDays) ?? DEFAULT_FILE_DAYS,
  }
}

interface Props {
  /** Whether the fields are those of a template, which has no expiry. */
  isTemplate?: boolean
  value: Policy
  onChange: (part: Partial<Policy>) => void
  errors: FieldErrors
}

/** The end of a license: never, on a day, or some days after the first use. `endsAt` is the present end. */
export function TermFields({
  value,
  onChange,
  errors,
  endsAt = null,
  isTemplate = false,
}: Props & { endsAt?: string | null }) {
  const hasEnd = value.type !== 'PERPETUAL'
  return (
    <>
      <div>
        <Input.Label component="div">{t.terms}</Input.Label>
        <SegmentedControl
          aria-label={t.terms}
          data={TYPES.map((type) => ({ value: type, label: t.types[type] }))}
          value={value.type}
          onChange={(type) => onChange({ type })}
          fullWidth
        />
        <p className="sub">{t.typeHints[value.type]}</p>
      </div>
      {hasEnd && !isTemplate && (
        <SegmentedControl
          aria-label={t.term}
          data={[
            { value: 'day', label: t.termEnds },
            { value: 'use', label: t.termFirstUse },
          ]}
          value={value.startsWithFirstUse ? 'use' : 'day'}
          onChange={(term) => onChange({ startsWithFirstUse: term === 'use' })}
        />
      )}
      {hasEnd && isTemplate && (
        <NumberInput
          label={text.templates.days}
          description={text.templates.daysHint}
          value={value.days}
          onChange={(days) => onChange({ days })}
          min={1}
          max={36_500}
          allowDecimal={false}
          error={errors['policy/durationDays']}
        />
      )}
      {hasEnd &&
        !isTemplate &&
        (value.startsWithFirstUse ? (
          <NumberInput
            label={t.days}
            description={t.daysHint}
            value={value.days}
            onChange={(days) => onChange({ days })}
            min={1}
            max={36_500}
            allowDecimal={false}
            error={errors['policy/durationDays'] ?? errors['policy/expiresAt']}
            required
          />
        ) : (
          <DateField
            label={t.expires}
            value={value.expiresOn}
            onChange={(expiresOn) => onChange({ expiresOn })}
            error={errors['policy/expiresAt'] ?? errors['policy/durationDays']}
            endsAt={endsAt}
          />
        ))}
    </>
  )
}

export function SlotFields({ value, onChange, errors }: Props) {
  return (
    <>
      <NumberInput
        label={t.maxMachines}
        description={t.maxMachinesHint}
        value={value.maxMachines}
        onChange={(maxMachines) => onChange({ maxMachines })}
        min={1}
        max={100_000}
        allowDecimal={false}
        error={errors['policy/maxMachines']}
      />
      <Switch
        label={t.floating}
        description={t.floatingHint}
        labelPosition="left"
        checked={value.isFloating}
        disabled={value.maxMachines === ''}
        onChange={(event) => onChange({ isFloating: event.currentTarget.checked })}
      />
      {value.isFloating && value.maxMachines !== '' && (
        <NumberInput
          label={t.lease}
          value={value.leaseMinutes}
          onChange={(leaseMinutes) => onChange({ leaseMinutes })}
          min={1}
          max={527_040}
          error={errors['policy/leaseSeconds']}
        />
      )}
    </>
  )
}

/** The rarely used terms: how often apps may release slots, the days of grace, and the lifetime of files. */
export function RareFields({ value, onChange, errors }: Props) {
  return (
    <>
      <NumberInput
        label={t.maxReleases}
        description={t.maxReleasesHint}
        value={value.maxReleases}
        onChange={(maxReleases) => onChange({ maxReleases })}
        min={0}
        max={1_000}
        allowDecimal={false}
        error={errors['policy/maxReleases']}
      />
      {value.type !== 'PERPETUAL' && (
        <NumberInput
          label={t.graceDays}
          description={t.graceDaysHint}
          value={value.graceDays}
          onChange={(graceDays) => onChange({ graceDays })}
          min={0}
          max={90}
          allowDecimal={false}
          error={errors['policy/graceDays']}
        />
      )}
      <NumberInput
        label={t.fileDays}
        description={t.fileDaysHint}
        value={value.fileDays}
        onChange={(fileDays) => onChange({ fileDays })}
        min={1}
        max={366}
        allowDecimal={false}
        error={errors['policy/fileDays']}
      />
    </>
  )
}

/** All terms of a license or a template. */
export function PolicyFields(props: Props & { endsAt?: string | null }) {
  return (
    <>
      <TermFields {...props} />
      <SlotFields {...props} />
      <RareFields {...props} />
    </>
  )
}
