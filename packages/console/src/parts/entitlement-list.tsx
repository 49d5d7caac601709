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
        const value = isOwn ? overrides[name] : defaults[name]
        const isUnlocked = value !== null && value !== false
        return (
          <Badge
            key={name}
            variant={isOwn ? 'light' : 'default'}
            color={isUnlocked ? 'indigo' : 'gray'}
            size="lg"
            radius="sm"
            title={isOwn ? 'of this license' : 'from the product'}
            {...(!isUnlocked && { td: 'line-through' })}
          >
            {name}
            {value === true || !isUnlocked ? '' : `: ${String(value)}`}
          </Badge>
        )
      })}
    </Group>
  )
}
