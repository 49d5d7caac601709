/** A form field for the permissions of a member or a token. A person cannot grant permissions that the person lacks. */

import { ALL_PERMISSIONS, type Permission } from '@keyward/contract'
import { Button, Checkbox, Group, Stack } from '@mantine/core'

import { useSignedIn } from '../api/me.ts'
import { text } from '../text.ts'

export const READ_ONLY: readonly Permission[] = ALL_PERMISSIONS.filter((name) => name.endsWith('.read'))

/** Returns the permissions in the form that requests contain. */
export function permissionsOf(names: readonly string[]): Permission[] {
  return ALL_PERMISSIONS.filter((name) => names.includes(name))
}

/** Returns the permissions as one line of text. */
export function permissionsText(permissions: readonly string[]): string {
  if (permissions.length === ALL_PERMISSIONS.length) return 'everything'
  return permissions.map((name) => text.permissions[name] ?? name).join(', ')
}

export function PermissionsField({
  value,
  onChange,
}: {
  value: readonly string[]
  onChange: (value: Permission[]) => void
}) {
  const { permissions: own } = useSignedIn()
  const granted = (names: readonly Permission[]) => names.filter((name) => own.includes(name))
  return (
    <Checkbox.Group label="May" value={[...value]} onChange={(names) => onChange(permissionsOf(names))}>
      <Group gap="xs" my="xs">
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(READ_ONLY))}>
          Read only
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(ALL_PERMISSIONS))}>
          Everything
        </Button>
      </Group>
      <Stack gap={6}>
        {ALL_PERMISSIONS.map((name) => (
          <Checkbox key={name} value={name} label={text.permissions[name] ?? name} disabled={!own.includes(name)} />
        ))}
      </Stack>
    </Checkbox.Group>
  )
}
