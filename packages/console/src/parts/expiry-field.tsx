/** A field for an expiry: never, a preset duration from now, or a time in the person's time zone. */

import { Group, Select, TextInput } from '@mantine/core'

const t = {
  expiry: {
    NEVER: 'Never',
    HOUR: 'In 1 hour',
    DAY: 'In 1 day',
    WEEK: 'In 7 days',
    MONTH: 'In 30 days',
    AT: 'At a time …',
  },
}
const HOUR_MS = 3_600_000
const PRESETS = { NEVER: null, HOUR: HOUR_MS, DAY: 24 * HOUR_MS, WEEK: 168 * HOUR_MS, MONTH: 720 * HOUR_MS } as const

const CHOICES = ['NEVER', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'AT'] as const

export interface Expiry {
  preset: (typeof CHOICES)[number]
  /** The value of the time field: local time without a zone. */
  at: string
}

export const NEVER: Expiry = { preset: 'NEVER', at: '' }

/** Converts a time of the API, or null for never, to a value of the field. */
export function expiryAt(time: string | null): Expiry {
  if (time === null) return NEVER
  const date = new Date(time)
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  return { preset: 'AT', at: local.toISOString().slice(0, 16) }
}

/** Returns the time to send, or null for never. Returns the text of the field if it is not a time, so that the API rejects it. */
export function timeOf({ preset, at }: Expiry): string | null {
  if (preset !== 'AT') {
    const ms = PRESETS[preset]
    return ms === null ? null : new Date(Date.now() + ms).toISOString()
  }
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? at : date.toISOString()
}

function isPreset(value: string | null): value is Expiry['preset'] {
  return CHOICES.some((one) => one === value)
}

export function ExpiryField({
  value,
  onChange,
  error,
}: {
  value: Expiry
  onChange: (value: Expiry) => void
  error?: string | undefined
}) {
  return (
    <Group align="start" grow>
      <Select
        label="Ends"
        data={CHOICES.map((preset) => ({
          value: preset,
          label: t.expiry[preset],
        }))}
        value={value.preset}
        onChange={(preset) => isPreset(preset) && onChange({ ...value, preset })}
        allowDeselect={false}
        error={value.preset === 'AT' ? undefined : error}
      />
      {value.preset === 'AT' && (
        <TextInput
          label="End"
          type="datetime-local"
          value={value.at}
          onChange={(event) => onChange({ ...value, at: event.currentTarget.value })}
          error={error}
          required
        />
      )}
    </Group>
  )
}
