/** A form field for the permissions of a member or a token. A person cannot grant permissions that the person lacks. */

import { ALL_PERMISSIONS, type Permission } from '@keyward/contract'
import { Button, Checkbox, Group, Stack } from '@mantine/core'

import { text } from '../text.ts'

const t = text.team

export const READ_ONLY: readonly string[] = ALL_PERMISSIONS.filter((name) => name.endsWith('.read'))

/** Returns the permissions in the form that requests contain. */
export function permissionsOf(names: readonly string[]): Permission[] {
  return ALL_PERMISSIONS.filter((name) => names.includes(name))
}

/** Returns the permissions as one line of text. */
export function permissionsText(permissions: readonly string[]): string {
  if (permissions.length === ALL_PERMISSIONS.length) return t.all
  return permissions.map((name) => t.names[name] ?? name).join(', ')
}

export function PermissionsField({
  value,
  onChange,
  own,
}: {
  value: readonly string[]
  onChange: (value: string[]) => void
  /** The permissions of the person. */
  own: readonly string[]
}) {
  const granted = (names: readonly string[]) => names.filter((name) => own.includes(name))
  return (
    <Checkbox.Group label={t.may} value={[...value]} onChange={onChange}>
      <Group gap="xs" my="xs">
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(READ_ONLY))}>
          {t.readOnly}
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(ALL_PERMISSIONS))}>
          {t.everything}
        </Button>
      </Group>
      <Stack gap={6}>
        {ALL_PERMISSIONS.map((name) => (
          <Checkbox key={name} value={name} label={t.names[name] ?? name} disabled={!own.includes(name)} />
        ))}
      </Stack>
    </Checkbox.Group>
  )
}
