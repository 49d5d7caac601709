/** A field for the last day of a term, with buttons for the usual ends and the chosen day in words. */

import { TextInput } from '@mantine/core'

import { endOf, longDay, usualEnds } from './days.ts'

const t = {
  month: '+1 month',
  year: '+1 year',
  endOfYear: 'End of the year',
}

export function DateField({
  label,
  value,
  onChange,
  error,
  endsAt,
  min,
}: {
  label: string
  /** The value of a date field, such as `2027-12-31`, or an empty text. */
  value: string
  onChange: (value: string) => void
  error?: string | undefined
  /** The present end, from which the usual ends are counted. */
  endsAt: string | null
  min?: string
}) {
  const usual = usualEnds(endsAt)
  const ends = Number.isNaN(Date.parse(endOf(value))) ? null : longDay(value)
  return (
    <div>
      <TextInput
        label={label}
        type="date"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        error={error}
        required
        {...(min !== undefined && { min })}
      />
      <div className="presets">
        {(['month', 'year', 'endOfYear'] as const).map((name) => (
          <button
            key={name}
            type="button"
            className="preset"
            aria-pressed={value === usual[name]}
            onClick={() => onChange(usual[name])}
          >
            {t[name]}
          </button>
        ))}
      </div>
      {ends && <p className="sub">{`Ends when ${ends.day} is over (${ends.timeZone}).`}</p>}
    </div>
  )
}
