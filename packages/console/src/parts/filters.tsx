import { Button, CloseButton, Group, Select, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'

import { text } from '../text.ts'

/** Arranges filters in one row. With `onClear`, a button clears all filters. */
export function FilterBar({ children, onClear }: { children: ReactNode; onClear: (() => void) | null }) {
  return (
    <Group gap="xs" role="search" className="filters">
      {children}
      {onClear && (
        <Button variant="subtle" color="gray" onClick={onClear}>
          {text.clearFilters}
        </Button>
      )}
    </Group>
  )
}

/** A field for a filter with a fixed set of values. */
export function ChoiceFilter({
  label,
  names,
  value,
  onChange,
}: {
  label: string
  /** Maps each value to its label. */
  names: Readonly<Record<string, string>>
  value: string | null
  onChange: (value: string | null) => void
}) {
  return (
    <Select
      label={label}
      placeholder={label}
      data={Object.entries(names).map(([key, name]) => ({ value: key, label: name }))}
      value={value}
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
            aria-label={text.clear}
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
