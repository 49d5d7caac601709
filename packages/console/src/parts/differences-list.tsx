import { ALL_PERMISSIONS } from '@keyward/contract'
import { Stack } from '@mantine/core'

import { useName } from '../api/names.ts'
import { text } from '../text.ts'
import type { Difference } from './differences.ts'
import { When } from './parts.tsx'

const t = text.audit
const MAX_SHOWN = 4
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:/

/** The labels of values, by the last name in the path of the field. */
const LABELS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  status: text.statuses,
  kind: text.kinds,
  scope: text.scopes,
  mode: text.rules.modes,
  type: { ...text.types, ...text.licenses.types },
  permissions: text.team.names,
  method: text.account.methods,
}

function lastOf(field: string): string {
  return field.split('.').at(-1) ?? field
}

/** Returns the label of a field: a known one, or the words of its name. */
function labelOf(field: string): string {
  const known = t.fields[field] ?? t.fields[lastOf(field)]
  if (known !== undefined) return known
  const words = field.replaceAll(
    /([a-z])([A-Z])/g,
    (_, left: string, right: string) => `${left} ${right.toLowerCase()}`,
  )
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function FieldLabel({ field }: { field: string }) {
  return labelOf(field)
}

function Name({ id }: { id: string }) {
  const name = useName(id)
  return name === '' ? id.slice(0, 8) : name
}

/** Shows one value, or all elements of a list. */
export function FieldValue({ field, value }: { field: string; value: unknown }) {
  if (!Array.isArray(value)) return <Value field={field} value={value} />
  const elements: unknown[] = value
  return elements.map((one, index) => (
    <div key={index}>
      <Value field={field} value={one} />
    </div>
  ))
}

function Value({ field, value }: { field: string; value: unknown }) {
  if (value === null || value === undefined || value === '') return t.nothing
  if (typeof value === 'boolean') return value ? t.yes : t.no
  if (typeof value === 'number') return value.toLocaleString()
  if (typeof value !== 'string') return JSON.stringify(value)
  if (TIME.test(value)) return <When at={value} />
  if (UUID.test(value)) return <Name id={value} />
  return LABELS[lastOf(field)]?.[value] ?? value
}

/** Shows the value before or after a change. Of a list, shows only the elements that the other list lacks. */
function Side({ field, value, other, isBefore }: { field: string; value: unknown; other: unknown; isBefore: boolean }) {
  const Tag = isBefore ? 'del' : 'ins'
  const values: unknown[] = Array.isArray(value) ? value : [value]
  const others: unknown[] = Array.isArray(other) ? other : []
  const isEverything = lastOf(field) === 'permissions' && values.length === ALL_PERMISSIONS.length
  const shown = isEverything ? [text.team.all] : values.filter((one) => !others.includes(one))
  return shown.map((one, index) => (
    <Tag key={index} className="difference">
      <Value field={field} value={one} />
    </Tag>
  ))
}

function Row({ difference: { field, ...values } }: { difference: Difference }) {
  const hasBefore = 'before' in values
  const hasAfter = 'after' in values
  const isList = Array.isArray(values.before) && Array.isArray(values.after)
  return (
    <div>
      <span className="difference-field">{labelOf(field)}</span>{' '}
      {hasBefore && <Side field={field} value={values.before} other={values.after} isBefore />}
      {hasBefore && hasAfter && (isList ? ' ' : ' → ')}
      {hasAfter && <Side field={field} value={values.after} other={values.before} isBefore={false} />}
    </div>
  )
}

export function Differences({ list }: { list: readonly Difference[] }) {
  const rest = list.slice(MAX_SHOWN)
  return (
    <Stack gap={4} className="differences">
      {list.slice(0, MAX_SHOWN).map((one) => (
        <Row key={one.field} difference={one} />
      ))}
      {rest.length > 0 && (
        <details>
          <summary>{t.more(rest.length)}</summary>
          <Stack gap={4} mt={4}>
            {rest.map((one) => (
              <Row key={one.field} difference={one} />
            ))}
          </Stack>
        </details>
      )}
    </Stack>
  )
}
