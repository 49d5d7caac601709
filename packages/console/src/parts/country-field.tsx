/** A field that chooses a country by its name or code. */

import { COUNTRY_CODES } from '@keyward/address/country'
import { Select } from '@mantine/core'

import { text } from '../text.ts'

const names = new Intl.DisplayNames(undefined, { type: 'region' })
const COUNTRIES = [...COUNTRY_CODES]
  .map((code) => ({ value: code, label: `${names.of(code) ?? code} (${code})` }))
  .toSorted((a, b) => a.label.localeCompare(b.label))

export function countryName(code: string): string {
  return COUNTRIES.find(({ value }) => value === code)?.label ?? code
}

export function CountryField({
  value,
  onChange,
  error,
  required = false,
}: {
  /** A country code, or an empty text if no country is chosen. */
  value: string
  onChange: (code: string) => void
  error?: string | undefined
  required?: boolean
}) {
  return (
    <Select
      label="Country"
      description={text.valueHints.COUNTRY}
      data={COUNTRIES}
      value={value === '' ? null : value}
      onChange={(code) => onChange(code ?? '')}
      error={error}
      searchable
      clearable={!required}
      required={required}
    />
  )
}
