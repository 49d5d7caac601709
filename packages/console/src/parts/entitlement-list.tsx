import type { EntitlementOverrides } from '@keyward/contract'
import { Badge, Group, Text } from '@mantine/core'

/** The effective entitlements of a license, with their origin. */
export function EntitlementList({
  defaults = {},
  overrides,
}: {
  defaults?: EntitlementOverrides
  overrides: EntitlementOverrides
}) {
  const names = [...new Set([...Object.keys(defaults), ...Object.keys(overrides)])].toSorted()
  if (names.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No entitlements.
      </Text>
    )
  return (
    <Group gap="xs">
      {names.map((name) => {
        const isOwn = name in overrides
        const value = overrides[name] ?? (isOwn ? null : (defaults[name] ?? null))
        return (
          <Badge
            key={name}
            variant={isOwn ? 'light' : 'default'}
            color={value === null ? 'gray' : 'indigo'}
            size="lg"
            radius="sm"
            title={isOwn ? 'of this license' : 'from the product'}
            {...(value === null && { td: 'line-through' })}
          >
            {name}
            {value === true || value === null ? '' : `: ${String(value)}`}
          </Badge>
        )
      })}
    </Group>
  )
}
