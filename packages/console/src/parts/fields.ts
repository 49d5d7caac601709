import { type ChangeEvent, useState } from 'react'

import type { FieldErrors } from '../api/input.ts'

/**
 * Keeps the values of the fields of a form. `text` returns the properties of an input for a text, with its error.
 */
export function useFields<Values extends object>(initial: Values | (() => Values)) {
  const [values, setValues] = useState(initial)
  const change = (changed: Partial<Values>) => setValues((before) => ({ ...before, ...changed }))
  const text = <Name extends keyof Values & string>(name: Name, errors: FieldErrors = {}) => ({
    value: values[name],
    onChange: ({ currentTarget: { value } }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      setValues((before) => ({ ...before, [name]: value })),
    error: errors[name],
  })
  return { values, change, text }
}

export type Fields<Values extends object> = ReturnType<typeof useFields<Values>>

/** Returns a text, or null if it is empty. */
export function orNull(value: string): string | null {
  return value === '' ? null : value
}
