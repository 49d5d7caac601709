import { Button, CloseButton, Group, Select, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'

import type { Filters, UrlFilters } from './url.ts'

/** Arranges filters in one row. With `onClear`, a button clears all filters. */
export function FilterBar({ children, onClear }: { children: ReactNode; onClear: (() => void) | null }) {
  return (
    <Group gap="xs" role="search" className="filters">
      {children}
      {onClear && (
        <Button variant="subtle" color="gray" onClick={onClear}>
          Clear the filters
        </Button>
      )}
    </Group>
  )
}

/** A field for a filter with a fixed set of values, which `names` maps to their labels. */
export function ChoiceFilter<Name extends string>({
  filters: [values, change],
  name,
  label,
  names,
}: {
  filters: UrlFilters<Name>
  name: Name
  label: string
  names: Readonly<Record<string, string>>
}) {
  const onChange = (value: string | null) => {
    const changed: Partial<Filters<Name>> = {}
    change(Object.assign(changed, { [name]: value }))
  }
  return (
    <Select
      label={label}
      placeholder={label}
      data={Object.entries(names).map(([value, shown]) => ({ value, label: shown }))}
      value={values[name]}
      onChange={onChange}
      clearable
      className="filter"
    />
  )
}

/** A field for a filter with any text. The filter changes on Enter and when the field loses the focus. */
export function TextFilter({
  label,
  placeholder,
  value,
  onChange,
}: {
  label: string
  placeholder?: string
  value: string | null
  onChange: (value: string | null) => void
}) {
  const [typed, setTyped] = useState(value ?? '')
  const [applied, setApplied] = useState(value)
  if (applied !== value) {
    setApplied(value)
    setTyped(value ?? '')
  }
  const apply = () => onChange(typed.trim())
  return (
    <TextInput
      label={label}
      {...(placeholder !== undefined && { placeholder })}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => event.key === 'Enter' && apply()}
      rightSection={
        typed === '' ? null : (
          <CloseButton
            size="sm"
            aria-label="Clear"
            onClick={() => onChange(null)}
            onMouseDown={(event) => event.preventDefault()}
          />
        )
      }
      className="filter-text"
      spellCheck={false}
    />
  )
}
