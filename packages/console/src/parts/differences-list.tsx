import { ALL_PERMISSIONS } from '@keyward/contract'
import { lines } from '@keyward/contract/text'
import { Stack } from '@mantine/core'

import { counted, text } from '../text.ts'
import type { Difference } from './differences.ts'
import { Name } from './name.tsx'
import { When } from './parts.tsx'

const t = {
  fields: {
    productId: 'Product',
    customerId: 'Customer',
    scopeId: 'Scope of',
    maxMachines: 'Machines at the same time',
    expiresAt: 'Ends',
    durationDays: 'Days from first use',
    leaseSeconds: 'Seconds without a check until the slot is free',
    maxReleases: 'Releases by apps in 30 days',
    'policy.type': 'Terms',
    externalId: 'External id',
    email: 'E-mail',
    url: 'URL',
    types: 'Events',
    key: 'License key',
    allowSuspendedOrExpired: 'Also for suspended and expired licenses',
    scope: 'Applies to',
    enabled: 'Receives events',
    into: 'Into',
    kind: 'Kind',
    type: 'What it matches',
    machineId: 'Machine id',
  } as Record<string, string>,
}
const MAX_SHOWN = 4
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:/

/** The labels of values, by the last name in the path of the field. */
const LABELS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  status: text.statuses,
  kind: text.kinds,
  scope: text.scopes,
  mode: text.modes,
  type: { ...text.types, ...text.terms },
  permissions: text.permissions,
  method: text.methods,
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
  if (value === null || value === undefined || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return value.toLocaleString()
  if (typeof value !== 'string') return lines(JSON.stringify(value))
  if (TIME.test(value)) return <When at={value} />
  if (UUID.test(value)) return <Name id={value} fallback={value.slice(0, 8)} />
  return LABELS[lastOf(field)]?.[value] ?? lines(value)
}

/** Shows the value before or after a change. Of a list, shows only the elements that the other list lacks. */
function Side({ field, value, other, isBefore }: { field: string; value: unknown; other: unknown; isBefore: boolean }) {
  const Tag = isBefore ? 'del' : 'ins'
  const values: unknown[] = Array.isArray(value) ? value : [value]
  const others: unknown[] = Array.isArray(other) ? other : []
  const isEverything = lastOf(field) === 'permissions' && values.length === ALL_PERMISSIONS.length
  const shown = isEverything ? ['everything'] : values.filter((one) => !others.includes(one))
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
          <summary>{counted(rest.length, 'more value')}</summary>
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
