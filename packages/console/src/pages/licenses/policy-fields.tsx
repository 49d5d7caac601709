import { type createLicense, DEFAULT_FILE_DAYS, type License, type PolicyType } from '@keyward/contract'
import { Checkbox, Group, Input, NumberInput, SegmentedControl, Stack, TextInput } from '@mantine/core'
import type { z } from 'zod'

import type { FieldErrors } from '../../api/input.ts'
import { ChoiceCards } from '../../parts/choice-cards.tsx'
import { text } from '../../text.ts'

const t = text.licenses
const TYPES = ['PERPETUAL', 'SUBSCRIPTION', 'TRIAL'] as const satisfies readonly PolicyType[]
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

export const NEW_POLICY: Policy = {
  type: 'PERPETUAL',
  startsWithFirstUse: false,
  expiresOn: '',
  days: 30,
  maxMachines: 1,
  isFloating: false,
  leaseMinutes: 10,
  maxReleases: '',
  graceDays: 0,
  fileDays: DEFAULT_FILE_DAYS,
}

export function policyOf({ policy }: Pick<License, 'policy'>): Policy {
  const { type, expiresAt, durationDays, maxMachines, leaseSeconds, maxReleases, graceDays, fileDays } = policy
  return {
    type,
    startsWithFirstUse: durationDays !== null && expiresAt === null,
    expiresOn: expiresAt?.slice(0, 10) ?? '',
    days: durationDays ?? NEW_POLICY.days,
    maxMachines: maxMachines ?? '',
    isFloating: leaseSeconds !== null,
    leaseMinutes: leaseSeconds === null ? NEW_POLICY.leaseMinutes : leaseSeconds / SECONDS_PER_MINUTE,
    maxReleases: maxReleases ?? '',
    graceDays,
    fileDays,
  }
}

const numberOf = (value: number | string): number | null => (value === '' ? null : Number(value))

/**
 * Returns the terms of a license as a change that restores them. Omits `durationDays` if the license has an expiry, because its term cannot
 * start again.
 */
export function formerPolicy({ policy: { durationDays, ...policy } }: License): Partial<License['policy']> {
  return durationDays !== null && policy.expiresAt !== null ? policy : { ...policy, durationDays }
}

/**
 * Returns the policy to send. Keeps the time of day of the expiry in `before` if the day is unchanged. Keeps `durationDays` of a term that
 * has started.
 */
export function bodyOf(policy: Policy, before?: License): NonNullable<z.input<typeof createLicense>['policy']> {
  const ends = policy.type !== 'PERPETUAL'
  const usesDays = ends && policy.startsWithFirstUse
  const earlier = before?.policy.expiresAt ?? null
  const startedDays = earlier === null ? null : (before?.policy.durationDays ?? null)
  const day = policy.expiresOn === '' ? null : `${policy.expiresOn}T00:00:00.000Z`
  return {
    type: policy.type,
    expiresAt: ends && !usesDays ? (earlier?.slice(0, 10) === policy.expiresOn ? earlier : day) : null,
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

function Term({ value, onChange, errors, isTemplate = false }: Props) {
  if (isTemplate)
    return (
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
    )
  return (
    <Stack gap="xs">
      <Stack gap={4}>
        <Input.Label component="div">{t.term}</Input.Label>
        <SegmentedControl
          aria-label={t.term}
          data={[
            { value: 'day', label: t.termEnds },
            { value: 'use', label: t.termFirstUse },
          ]}
          value={value.startsWithFirstUse ? 'use' : 'day'}
          onChange={(term) => onChange({ startsWithFirstUse: term === 'use' })}
        />
      </Stack>
      {value.startsWithFirstUse ? (
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
        <TextInput
          label={t.expires}
          description={t.expiresHint}
          type="date"
          value={value.expiresOn}
          onChange={(event) => onChange({ expiresOn: event.currentTarget.value })}
          error={errors['policy/expiresAt'] ?? errors['policy/durationDays']}
          required
        />
      )}
    </Stack>
  )
}

function Slots({ value, onChange, errors }: Props) {
  return (
    <>
      <Group align="start" grow>
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
      </Group>
      <Checkbox
        label={t.floating}
        description={t.floatingHint}
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

/** The days after the expiry, and the lifetime of files. */
function Days({ value, onChange, errors }: Props) {
  return (
    <Group align="start" grow>
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
    </Group>
  )
}

export function PolicyFields(props: Props) {
  const { value, onChange } = props
  return (
    <>
      <ChoiceCards
        label={t.terms}
        values={TYPES}
        names={t.types}
        hints={t.typeHints}
        value={value.type}
        onChange={(type) => onChange({ type })}
      />
      {value.type !== 'PERPETUAL' && <Term {...props} />}
      <Slots {...props} />
      <Days {...props} />
    </>
  )
}
