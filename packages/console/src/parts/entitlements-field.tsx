/** An editor for entitlements: names with "on", "off", a whole number or a text. On a license, rows override the defaults of the product. */

import type { EntitlementOverrides } from '@keyward/contract'
import { Button, Group, Input, Select, Stack, Text, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'

import type { FieldErrors } from '../api/input.ts'
import { IconButton } from './parts.tsx'

const t = {
  types: { true: 'on', false: 'off', integer: 'number', text: 'text', null: 'removed' },
}
type Value = EntitlementOverrides[string]
type Type = keyof typeof t.types

export interface EntitlementRow {
  name: string
  type: Type
  /** The typed number or text. */
  value: string
}

function rowOf(name: string, value: Value): EntitlementRow {
  if (value === null) return { name, type: 'null', value: '' }
  if (typeof value === 'boolean') return { name, type: value ? 'true' : 'false', value: '' }
  return { name, type: typeof value === 'number' ? 'integer' : 'text', value: String(value) }
}

export function rowsOf(entitlements: EntitlementOverrides): EntitlementRow[] {
  return Object.entries(entitlements).map(([name, value]) => rowOf(name, value))
}

function valueOf({ type, value }: EntitlementRow): Value {
  if (type === 'true' || type === 'false') return type === 'true'
  if (type === 'null') return null
  // An incomplete number stays a text. The API would accept it as a text, so `problemOf` reports it.
  return type === 'integer' && /^-?\d+$/.test(value.trim()) ? Number(value) : value
}

/** Returns the overrides to send. */
export function entitlementsOf(rows: readonly EntitlementRow[]): EntitlementOverrides {
  return Object.fromEntries(rows.map((row) => [row.name.trim(), valueOf(row)]))
}

/** Returns the entitlements of a product, which cannot be null. */
export function grantsOf(rows: readonly EntitlementRow[]): Record<string, NonNullable<Value>> {
  return Object.fromEntries(
    rows.flatMap((row) => {
      const value = valueOf(row)
      return value === null ? [] : [[row.name.trim(), value]]
    }),
  )
}

/** Returns the problem of a row that the API cannot detect: a repeated name, or text instead of a number. */
function problemOf(row: EntitlementRow, rows: readonly EntitlementRow[]): string | undefined {
  if (rows.some((other) => other !== row && other.name.trim() === row.name.trim() && row.name !== ''))
    return 'Another row has the same name.'
  return row.type === 'integer' && !/^-?\d+$/.test(row.value.trim()) ? 'Enter a whole number.' : undefined
}

export function hasProblem(rows: readonly EntitlementRow[]): boolean {
  return rows.some((row) => problemOf(row, rows) !== undefined)
}

function shownValue(value: Value): string {
  if (typeof value === 'boolean') return t.types[value ? 'true' : 'false']
  return value === null ? t.types.null : String(value)
}

function isType(value: string | null): value is Type {
  return value !== null && value in t.types
}

function RowFields({
  row,
  onChange,
  onRemove,
  canBeNull,
  error,
}: {
  row: EntitlementRow
  onChange: (row: EntitlementRow) => void
  onRemove: () => void
  canBeNull: boolean
  error: string | undefined
}) {
  const types = Object.entries(t.types).filter(([type]) => canBeNull || type !== 'null')
  const hasValue = row.type === 'integer' || row.type === 'text'
  return (
    <Stack gap={2}>
      <Group gap="xs" wrap="nowrap" align="center">
        <TextInput
          aria-label="Name"
          placeholder="Name"
          value={row.name}
          onChange={(event) => onChange({ ...row, name: event.currentTarget.value })}
          classNames={{ input: 'mono' }}
          className="grow"
          spellCheck={false}
        />
        <Select
          aria-label="Type"
          data={types.map(([value, label]) => ({ value, label }))}
          value={row.type}
          onChange={(type) => isType(type) && onChange({ ...row, type })}
          allowDeselect={false}
          w={108}
        />
        {hasValue && (
          <TextInput
            aria-label="Value"
            placeholder="Value"
            value={row.value}
            onChange={(event) => onChange({ ...row, value: event.currentTarget.value })}
            inputMode={row.type === 'integer' ? 'numeric' : 'text'}
            w={row.type === 'integer' ? 90 : 150}
          />
        )}
        <IconButton label="Remove" icon={<IconTrash size={16} />} onClick={onRemove} />
      </Group>
      {error !== undefined && <Input.Error>{error}</Input.Error>}
    </Stack>
  )
}

export function EntitlementsField({
  rows,
  onChange,
  defaults = {},
  errors,
  description = 'Names and values that the app receives with each valid check.',
}: {
  rows: readonly EntitlementRow[]
  onChange: (rows: EntitlementRow[]) => void
  /** The defaults of a license's product. The form of a product omits them. */
  defaults?: EntitlementOverrides
  errors: FieldErrors
  description?: string
}) {
  const names = new Set(rows.map(({ name }) => name.trim()))
  const inherited = Object.entries(defaults).filter(([name]) => !names.has(name))
  const add = (row: EntitlementRow) => onChange([...rows, row])
  return (
    <Stack gap="xs" component="section" aria-label="Entitlements">
      <div>
        <Input.Label component="div">Entitlements</Input.Label>
        <Input.Description>{description}</Input.Description>
      </div>
      {inherited.map(([name, value]) => (
        <Group key={name} gap="xs" justify="space-between">
          <Text size="sm">
            <span className="mono">{name}</span>: {shownValue(value)}{' '}
            <Text span size="xs" c="dimmed">
              from the product
            </Text>
          </Text>
          <Group gap={4}>
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Override ${name}`}
              onClick={() => add(rowOf(name, value))}
            >
              Override
            </Button>
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Take away ${name}`}
              onClick={() => add({ name, type: 'null', value: '' })}
            >
              Take away
            </Button>
          </Group>
        </Group>
      ))}
      {rows.map((row, index) => (
        <RowFields
          // A row has no identity except its position.
          key={index}
          row={row}
          onChange={(next) => onChange(rows.map((one, at) => (at === index ? next : one)))}
          onRemove={() => onChange(rows.filter((_, at) => at !== index))}
          canBeNull={row.type === 'null' || row.name.trim() in defaults}
          error={problemOf(row, rows) ?? errors[`entitlements/${row.name.trim()}`]}
        />
      ))}
      {errors['entitlements'] !== undefined && <Input.Error>{errors['entitlements']}</Input.Error>}
      <Group>
        <Button
          size="compact-sm"
          variant="subtle"
          leftSection={<IconPlus size={14} />}
          onClick={() => add({ name: '', type: 'true', value: '' })}
        >
          Add an entitlement
        </Button>
      </Group>
    </Stack>
  )
}
